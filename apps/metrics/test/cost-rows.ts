import { newUid } from "@millwright/ids";
import { urlKey } from "../src/domain/url-key.ts";
import { lockFactories } from "../src/store/factory-lock.ts";
import { projectPullRequests } from "../src/store/project-pull-requests.ts";
import { shareTrees } from "../src/store/share-store.ts";
import { TEAM, type World } from "./setup.ts";

export type RunRow = {
  run_uid: string;
  team_uid: string;
  factory_uid: string;
  root_run_uid: string;
  parent_run_uid: string | null;
  conversation_uid: string;
  created_at: string;
  version: number;
  state: string;
  source: string;
  agent_uid: string;
  agent_name: string;
  agent_type: string;
  model_id: string;
  harness: string;
  root_source: string;
  creator_type: string;
  creator_uid: string;
  person_follow_ups: number;
};

export type Component = "inference" | "compute" | "platform";
const KINDS: Readonly<Record<Component, string>> = {
  inference: "model_call",
  compute: "compute_interval",
  platform: "platform_charge",
};

export type SpendInit = { at?: string; kind?: string; usedBy?: RunRow };
export type ProducedInit = { at?: string; additions?: number | null; deletions?: number | null };

const urlOf = (number: number): string => `https://github.com/Acme/Shop/pull/${number}`;

/** Facts of one factory, as ingestion stores them; written in few statements by `store`. */
export class CostFacts {
  readonly #world: World;
  readonly factoryUid: string;
  readonly #runs: RunRow[] = [];
  readonly #entries: object[] = [];
  readonly #produced: { run_uid: string; factory_uid: string; url_key: string; root_run_uid: string }[] = [];

  constructor(world: World, factoryUid: string = world.aFactory()) {
    this.#world = world;
    this.factoryUid = factoryUid;
  }

  /** Adds a run; a root unless it has a parent. */
  run(init: Partial<RunRow> = {}, parent?: RunRow): RunRow {
    const uid = newUid();
    const source = init.source ?? "API";
    const run: RunRow = {
      run_uid: uid,
      team_uid: TEAM,
      factory_uid: this.factoryUid,
      root_run_uid: parent?.root_run_uid ?? uid,
      parent_run_uid: parent?.run_uid ?? null,
      conversation_uid: newUid(),
      created_at: "2026-11-18T09:00:00.000Z",
      version: 1,
      state: "SUCCEEDED",
      source,
      root_source: parent?.root_source ?? source,
      agent_uid: "agent",
      agent_name: "builder",
      agent_type: "IMPLEMENT",
      model_id: "large",
      harness: "claude",
      creator_type: parent?.creator_type ?? "user",
      creator_uid: parent?.creator_uid ?? "user",
      person_follow_ups: 0,
      ...init,
    };
    this.#runs.push(run);
    return run;
  }

  /** Adds an entry of the ledger, attributed to a run. Without micro-dollars it has no price. */
  spend(owner: RunRow, component: Component, micros: number | null, init: SpendInit = {}): void {
    const { at = "2026-11-18T10:00:00.000Z", kind = KINDS[component], usedBy = owner } = init;
    this.#entries.push({
      source_key: newUid(),
      team_uid: TEAM,
      factory_uid: this.factoryUid,
      run_uid: usedBy.run_uid,
      component,
      kind,
      occurred_at: at,
      micros,
      price_version: 1,
      quantity: {},
      owner_run_uid: owner.run_uid,
      owner_root_uid: owner.root_run_uid,
      source: owner.root_source,
      creator_type: owner.creator_type,
      creator_uid: owner.creator_uid,
      agent_uid: owner.agent_uid,
      model_id: owner.model_id,
      recorded_at: at,
      corrects: null,
      unpriced_change: null,
    });
  }

  /** Whether the run has produced a pull request of this number. */
  hasProduced = (run: RunRow, number: number): boolean =>
    this.#produced.some(({ run_uid, url_key }) => run_uid === run.run_uid && url_key === urlKey(urlOf(number)));

  /** Adds a pull request that a run has produced. Returns its URL. */
  produce(
    run: RunRow,
    number: number,
    { at = "2026-11-18T11:00:00.000Z", additions = null, deletions = null }: ProducedInit = {},
  ): string {
    const url = urlOf(number);
    this.#produced.push({
      run_uid: run.run_uid,
      ...{
        team_uid: TEAM,
        url,
        provider: "GITHUB",
        repo_full_name: "Acme/Shop",
        pr_number: number,
        title: "Fix it",
        created_at: at,
      },
      ...{ run_created_at: run.created_at, additions, deletions, changed_files: null, num_commits: null },
      factory_uid: this.factoryUid,
      url_key: urlKey(url),
      root_run_uid: run.root_run_uid,
    });
    return url;
  }

  /** Writes everything that was added, then shares the cost of trees among their pull requests and projects these. */
  async store(): Promise<void> {
    await this.#insert("run_facts", this.#runs);
    await this.#insert("ledger_entries", this.#entries);
    await this.#insert("produced_pull_requests", this.#produced);
    await this.#world.t.database.transaction(async (tx) => {
      await lockFactories(tx, [this.factoryUid]);
      await shareTrees(
        tx,
        this.#produced.map((each) => each.root_run_uid),
      );
      await projectPullRequests(tx, this.factoryUid, [...new Set(this.#produced.map(({ url_key }) => url_key))]);
    });
  }

  async #insert(table: string, rows: readonly object[]): Promise<void> {
    await this.#world.rows(`INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`, [
      JSON.stringify(rows),
    ]);
  }
}

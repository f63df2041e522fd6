import { newUid } from "@millwright/ids";
import { enqueueWork } from "@millwright/work";
import { manifestHash, type Manifest, type ManifestScorer } from "../src/domain/manifest.ts";
import type { Scoring } from "../src/compose.ts";
import { LABELS, NOW, OWNER, TEAM, type World } from "./setup.ts";

export type BenchmarkInit = {
  tasks?: number;
  configurations?: number;
  repetitions?: number;
  parallelism?: number;
  /** Scorers of every trial; none by default. */
  scorers?: readonly (Partial<ManifestScorer> & { uid: string })[];
  teamUid?: string;
  replayedRunUid?: string;
  /** Identifiers of the replayed benchmark run. */
  identifiers?: Manifest["identifiers"];
};

export type Benchmark = { uid: string; agentUid: string; factoryUid: string; teamUid: string; manifest: Manifest };

export const COMMIT = "c".repeat(40);
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Inserts a launched benchmark run, with the rows that a launch writes. */
export async function aBenchmark(w: World, init: BenchmarkInit = {}): Promise<Benchmark> {
  const { tasks = 1, configurations = 1, repetitions = 1, parallelism = 4, scorers = [], teamUid = TEAM } = init;
  const [uid, agentUid, factoryUid, suiteUid] = [newUid(), newUid(), w.aFactory({ teamUid }), newUid()];
  const manifest: Manifest = {
    content: {
      format: "millwright.benchmark.v1",
      runners: [],
      repetition_count: repetitions,
      agents: [{ name: "lead", layers: [], environment: null, skills: [] }],
      tasks: times(tasks, (n) => ({
        title: `Task ${n}`,
        prompt: `Prompt ${n}`,
        success_criteria: `Criteria ${n}`,
        rule: null,
        tags: [],
        labels: {},
        repositories: [{ code_forge: "local", owner: "acme", repo: "prices", commit: COMMIT }],
      })),
      configurations: times(configurations, (n) => ({
        role: n === 0 ? "baseline" : "candidate",
        display_name: `C${n}`,
        harness: "",
        model: `model-${n}`,
        runner: "",
        harness_auth_secret_name: null,
        agent_configs: [],
      })),
      scorers: scorers.map(({ uid: _uid, ...scorer }) => ({
        name: "Correct",
        kind: "user",
        labels: LABELS,
        threshold: 0.5,
        scoring_prompt: "Good?",
        model_id: "judge-large",
        rule: null,
        agent_config: null,
        ...scorer,
      })),
    },
    identifiers: init.identifiers ?? {
      factory_uid: factoryUid,
      suite_uid: suiteUid,
      suite_version: 1,
      agents: [{ uid: agentUid, layers: [] }],
      tasks: times(tasks, (n) => ({ uid: newUid(), id: n + 1, source_run_uid: newUid() })),
      configurations: times(configurations, (n) => ({ uid: newUid(), id: n + 1, runner_uid: "" })),
      scorers: scorers.map((scorer, n) => ({ uid: scorer.uid, id: n + 1, version: 3 })),
      scorer_selection: [],
    },
  };
  await w.t.database.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO benchmark_runs (uid, suite_uid, suite_name, suite_version, factory_uid, team_uid, state, manifest, manifest_hash, repetition_count, agent_uid, agent_name,
                                   parallelism, replayed_run_uid, creator_type, creator_uid, created_at, updated_at)
       VALUES ($1, $2, 'Suite', 1, $3, $4, 'pending', $5::jsonb, $6, $7, $8, 'lead', $9, $10, 'user', $11, $12, $12)`,
      [
        uid,
        suiteUid,
        factoryUid,
        teamUid,
        JSON.stringify(manifest),
        manifestHash(manifest.content),
        repetitions,
        agentUid,
        parallelism,
        init.replayedRunUid ?? null,
        OWNER.principal.uid,
        NOW,
      ],
    );
    const { tasks: taskIds, configurations: configurationIds } = manifest.identifiers;
    const trials = taskIds.flatMap((task) =>
      configurationIds.flatMap((configuration) =>
        times(repetitions, (rep) => ({ uid: newUid(), task: task.uid, configuration: configuration.uid, rep })),
      ),
    );
    await tx.query(
      `INSERT INTO trials (uid, benchmark_run_uid, position, configuration_uid, task_uid, rep_index, created_at)
       SELECT g.uid, $1, n - 1, g.configuration, g.task, g.rep, $3
         FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS e (v, n), jsonb_to_record(e.v) AS g (uid uuid, task uuid, configuration uuid, rep integer)`,
      [uid, JSON.stringify(trials), NOW],
    );
    await tx.query(
      "INSERT INTO trial_scores (trial_uid, scorer_uid, state) SELECT t.uid, s.uid, 'awaiting_trial' FROM trials t, unnest($2::uuid[]) AS s (uid) WHERE t.benchmark_run_uid = $1",
      [uid, scorers.map((scorer) => scorer.uid)],
    );
  });
  return { uid, agentUid, factoryUid, teamUid, manifest };
}

/** Processes all work and events that are due: starts trials, applies events and starts judges. */
export async function settle(service: Scoring): Promise<void> {
  await service.work.drain();
  for (const consumer of service.consumers) await consumer.drain();
  await service.work.drain();
  while (await service.benchmarkEngine.loop.advanceDue()) await service.work.drain();
}

export type TrialRow = {
  uid: string;
  state: string;
  terminal_reason: string | null;
  is_infra_failure: boolean;
  attempt_count: number;
  run_uid: string | null;
};

/** Returns the trials of a benchmark run in the order of the manifest. */
export const trialsOf = (w: World, { uid }: Pick<Benchmark, "uid">): Promise<TrialRow[]> =>
  w.rows<TrialRow>(
    "SELECT uid, state, terminal_reason, is_infra_failure, attempt_count, run_uid FROM trials WHERE benchmark_run_uid = $1 ORDER BY position",
    [uid],
  );

export const stateOf = async (w: World, { uid }: Pick<Benchmark, "uid">): Promise<string> =>
  (await w.rows<{ state: string }>("SELECT state FROM benchmark_runs WHERE uid = $1", [uid]))[0]!.state;

/** Returns the attempts of a trial, such as "1 failed resource_unavailable". */
export async function attemptsOf(w: World, trialUid: string): Promise<string[]> {
  const found = await w.rows<{ attempt_number: number; state: string; error_code: string | null }>(
    "SELECT attempt_number, state, error_code FROM trial_attempts WHERE trial_uid = $1 ORDER BY attempt_number",
    [trialUid],
  );
  return found.map((row) => [row.attempt_number, row.state, row.error_code].filter((part) => part !== null).join(" "));
}

/** Returns the states of the scores of a benchmark run, ordered by the position of the trial. */
export async function scoreStates(w: World, { uid }: Pick<Benchmark, "uid">): Promise<string[]> {
  const found = await w.rows<{ state: string }>(
    "SELECT s.state FROM trial_scores s JOIN trials t ON t.uid = s.trial_uid WHERE t.benchmark_run_uid = $1 ORDER BY t.position",
    [uid],
  );
  return found.map(({ state }) => state);
}

/** Returns the runs of trials in the fake orchestrator, oldest first. */
export const trialRuns = (w: World) =>
  [...w.orchestrator.runs.values()].filter(({ request }) => request?.source === "BENCHMARK_TRIAL");
export const queuedRuns = (w: World) => trialRuns(w).filter(({ described }) => described.state === "QUEUED");

/** Makes all delayed work due now. */
export const makeWorkDue = (w: World): Promise<unknown> =>
  w.rows("UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE state = 'waiting'");

/** Inserts a scorer and returns its uid. */
export async function aStoredScorer(w: World, kind = "user"): Promise<string> {
  const uid = newUid();
  await w.rows(
    `INSERT INTO scorers (uid, factory_uid, team_uid, name, kind, scope_mode, labels, threshold, scoring_prompt, model_id, creator_type, creator_uid, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, 'all_agents', '[]', 0.5, 'now different', 'judge-small', 'user', $6, $7, $7)`,
    [uid, newUid(), TEAM, `Scorer ${uid}`, kind, OWNER.principal.uid, NOW],
  );
  return uid;
}

/** Cancels a benchmark run in the same way as its use case. */
export const cancelBenchmark = (w: World, { uid }: Pick<Benchmark, "uid">): Promise<void> =>
  w.t.database.transaction(async (tx) => {
    await tx.query("UPDATE benchmark_runs SET state = 'cancelled', completed_at = $2 WHERE uid = $1", [uid, NOW]);
    const { rows } = await tx.query<{ uid: string; run_uid: string | null }>(
      "UPDATE trials SET state = 'cancelled', completed_at = $2 WHERE benchmark_run_uid = $1 AND state IN ('pending', 'running') RETURNING uid, run_uid",
      [uid, NOW],
    );
    await tx.query(
      "UPDATE trial_scores s SET state = 'not_scoreable' FROM trials t WHERE t.uid = s.trial_uid AND t.benchmark_run_uid = $1 AND s.state = 'awaiting_trial'",
      [uid],
    );
    for (const row of rows) {
      const payload = { benchmark_run_uid: uid, trial_uid: row.uid, run_uid: row.run_uid };
      if (row.run_uid) await enqueueWork(tx, { kind: "cancel-trial-run", key: row.run_uid, payload, teamUid: TEAM });
    }
  });

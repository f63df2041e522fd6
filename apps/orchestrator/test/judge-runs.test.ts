import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { DEFAULT_TIMINGS } from "../src/runs/domain/timings.ts";
import { assignmentMessage } from "../src/leases/rpc/worker-messages.ts";
import { sweepStore } from "../src/artifacts/store/sweep-store.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution, startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

const COMMIT = "a".repeat(40);
let p: CatalogPlatform;
let person: Caller;
let scoring: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeAll(async () => {
  p = await catalogPlatform({
    modelProviders: [{ provider: "openai", apiKey: "canary-platform", baseUrl: "https://platform.test/v1" }],
  });
  worker = await p.worker({ slots: 100 });
});
beforeEach(() => {
  person = aCaller();
  scoring = serviceCaller("scoring", newUid(), person.principal, person.teams);
});
afterAll(() => p.close());

const judge = { scorerUid: newUid(), classifications: ["pass", "fail"] };
const SCRIPTED = { model_id: "scripted" };
const judgeRun = (request: Partial<NewRun> = {}) =>
  p.run(scoring, { ...owned(), source: "RUN_SCORER", judge, config: SCRIPTED, ...request });
const owned = () => ({ owner: { type: "team" as const, uid: teamOf(person) } });
const sent = (execution: ActiveExecution) => assignmentMessage(execution.assignment, DEFAULT_TIMINGS, 0);

/** Creates a run that worked on a repository and ended. Its workspace is saved, unchanged since the clone, or lost. */
async function endedRun(workspace: "saved" | "unchanged" | "lost", owner = person) {
  const run = await p.run(owner);
  await p.database.sql.query(
    `UPDATE runs SET frozen = jsonb_set(frozen, '{repositories}', '[{"owner": "acme", "repo": "app"}]') WHERE uid = $1`,
    [run.uid],
  );
  const execution = await acceptExecution(p, worker);
  await execution.append(
    execution.event("repository_cloned", { owner: "acme", name: "app", branch: "agent/x", base_sha: COMMIT }),
  );
  await execution.start();
  const content = new TextEncoder().encode(`tar of ${run.uid}`);
  const announced = { sizeBytes: BigInt(content.length), sha256: createHash("sha256").update(content).digest("hex") };
  const snapshotKey =
    workspace === "saved"
      ? (await p.workers.putSnapshot({ ...execution.lease, ...announced }, bearer(worker))).snapshotKey
      : undefined;
  await execution.complete("DONE", {
    snapshotKey,
    isWorkspaceUnchanged: workspace === "unchanged",
  });
  return { run, snapshotKey };
}

describe("requests that only the scoring service may make", () => {
  test.each<[string, Partial<NewRun>]>([
    ["a judge", { judge, source: "RUN_SCORER" }],
    ["the workspace of a run", { workspaceOfRunUid: newUid() }],
    ["overrides of agents", { agentOverrides: { [newUid()]: {} } }],
    ["pinned repositories", { pinnedRepositories: [{ owner: "acme", repo: "app", commit: COMMIT }] }],
    ["the source RUN_SCORER", { source: "RUN_SCORER" }],
    ["the source BENCHMARK_TRIAL", { source: "BENCHMARK_TRIAL" }],
    ["the source SELF_IMPROVEMENT", { source: "SELF_IMPROVEMENT" }],
  ])("%s is refused to a person and to other services", async (_what, request) => {
    const factories = serviceCaller("factories", newUid(), person.principal, person.teams);
    for (const who of [person, factories]) {
      await expect(p.run(who, { ...owned(), ...request })).rejects.toEqual(
        domainError({ kind: "invalid_argument", reason: "reserved_for_scoring" }),
      );
    }
  });
});

describe("a judge run", () => {
  test("belongs to its factory and inherits only the default model of its configuration", async () => {
    const factoryUid = newUid();
    p.known.teamLayer.config = { base_prompt: "Team.", environment_id: "nowhere" };
    const run = await judgeRun({ factoryUid, config: { secrets: [] } });
    p.known.teamLayer.config = {};
    const execution = await acceptExecution(p, worker);
    expect(execution.assignment.job.frozen).toMatchObject({
      factory_uid: factoryUid,
      base_prompt: "",
      repositories: [],
      secret_names: [],
      skills: [],
      spawnable_agents: [],
      harness: "oz",
    });
    expect(sent(execution)).toMatchObject({
      runUid: run.uid,
      judge,
      snapshotRequired: false,
      repositories: [],
      secrets: {},
    });
    await execution.complete("DONE");
    expect((await p.facts(run.uid)).at(-1)).toMatchObject({
      type: "millwright.run.finished.v1",
      payload: { factory_uid: factoryUid, source: "RUN_SCORER" },
    });
  });

  test("refuses follow-ups in every state", async () => {
    const run = await judgeRun();
    const follow = () =>
      p.life.createFollowup(person, {
        target: { runUid: run.uid },
        message: "```scripted\n- score: {label: pass}\n```",
        mode: "normal",
        attachmentUids: [],
      });
    await expect(follow()).rejects.toEqual(domainError({ reason: "operation_not_supported" }));
    const execution = await startExecution(p, worker);
    await expect(follow()).rejects.toEqual(domainError({ reason: "operation_not_supported" }));
    await execution.complete("DONE");
    await expect(follow()).rejects.toEqual(domainError({ reason: "operation_not_supported" }));
    await expect(p.life.retryRun({ ...person, requestId: newUid() }, { runUid: run.uid })).rejects.toEqual(
      domainError({ reason: "operation_not_supported" }),
    );
  });

  test("requires the source of judges, and a scorer", async () => {
    await expect(judgeRun({ source: "API" })).rejects.toEqual(domainError({ reason: "judge_invalid" }));
    await expect(judgeRun({ judge: { ...judge, scorerUid: "" } })).rejects.toEqual(
      domainError({ reason: "judge_invalid" }),
    );
  });

  test("has a cost limit if its model has a price, and only a step limit otherwise", async () => {
    const limited = { cost_limit_usd: 2, step_limit: 60 };
    await judgeRun({ config: { ...limited, model_id: "gpt-5.1" } });
    await judgeRun({ config: { ...limited, model_id: "openai/unpriced" } });
    const [priced, unpriced] = [await acceptExecution(p, worker), await acceptExecution(p, worker)];
    expect([priced.assignment.job.frozen, unpriced.assignment.job.frozen]).toMatchObject([
      { cost_limit_micros: 2_000_000, step_limit: 60 },
      { model_id: "openai/unpriced", step_limit: 60 },
    ]);
    expect(unpriced.assignment.job.frozen).not.toHaveProperty("cost_limit_micros");
    await expect(p.run(person, { ...owned(), config: { ...limited, model_id: "openai/unpriced" } })).rejects.toEqual(
      domainError({ reason: "cost_limit_unpriced" }),
    );
    await Promise.all([priced.complete("DONE"), unpriced.complete("DONE")]);
  });

  test("on a third-party harness is a conflict", async () => {
    await expect(judgeRun({ config: { harness: { type: "claude" } } })).rejects.toEqual(
      domainError({ reason: "config_conflict" }),
    );
  });
});

describe("the workspace of a run", () => {
  test("is restored in the first execution, over the commits that were cloned then", async () => {
    const { run, snapshotKey } = await endedRun("saved");
    await judgeRun({ workspaceOfRunUid: run.uid });
    const execution = await acceptExecution(p, worker);
    expect(sent(execution)).toMatchObject({
      snapshotKey,
      snapshotRequired: true,
      repositories: [{ owner: "acme", name: "app", baseCommit: COMMIT }],
    });
    expect(execution.assignment.snapshotUrl).toContain("http://public.test");
    await execution.complete("DONE");
  });

  test("that is unchanged since its clones is cloned again", async () => {
    const { run } = await endedRun("unchanged");
    await judgeRun({ workspaceOfRunUid: run.uid });
    const execution = await acceptExecution(p, worker);
    expect(sent(execution)).toMatchObject({
      snapshotKey: "",
      snapshotUrl: "",
      snapshotRequired: false,
      repositories: [{ owner: "acme", name: "app", baseCommit: COMMIT }],
    });
    await execution.complete("DONE");
  });

  test("is refused if it is unknown, lost, of a run that has not ended, or of another owner", async () => {
    const [lost, foreign] = [await endedRun("lost"), await endedRun("saved", aCaller())];
    const live = await p.run(person);
    for (const uid of [newUid(), "nonsense", lost.run.uid, foreign.run.uid, live.uid]) {
      await expect(judgeRun({ workspaceOfRunUid: uid })).rejects.toEqual(
        domainError({ kind: "invalid_argument", reason: "workspace_missing" }),
      );
    }
    await p.life.cancelRun(person, { runUid: live.uid, tree: false });
  });

  test("is stored while a run that starts from it is active, whatever its age, and is removed afterwards", async () => {
    const { run, snapshotKey } = await endedRun("saved");
    const borrower = await judgeRun({ workspaceOfRunUid: run.uid });
    const future = new Date(Date.now() + 3600_000);
    const dropped = async () =>
      (
        await p.database.transaction((tx) =>
          sweepStore.dropExpiredSnapshots(tx, { before: future, retainedSince: future }, 500),
        )
      ).includes(snapshotKey!);
    expect(await dropped()).toBe(false);
    await p.life.cancelRun(scoring, { runUid: borrower.uid, tree: false });
    expect(await dropped()).toBe(true);
    await expect(judgeRun({ workspaceOfRunUid: run.uid })).rejects.toEqual(
      domainError({ reason: "workspace_missing" }),
    );
  });
});

describe("pinned repositories", () => {
  const trial = (pinnedRepositories: NewRun["pinnedRepositories"]) =>
    p.run(scoring, { ...owned(), source: "BENCHMARK_TRIAL", pinnedRepositories: pinnedRepositories! });

  test("replace those of the configuration, and are assigned with their commits", async () => {
    await trial([{ owner: "acme", repo: "app", commit: COMMIT }]);
    const execution = await acceptExecution(p, worker);
    expect(sent(execution).repositories).toMatchObject([
      { owner: "acme", name: "app", baseCommit: COMMIT, workBranch: `agent/${execution.assignment.job.run.runUid}` },
    ]);
    await execution.complete("DONE");
  });

  test.each([
    ["a short commit id", [{ owner: "acme", repo: "app", commit: "abc123" }]],
    ["a branch", [{ owner: "acme", repo: "app", commit: "main" }]],
    ["no name", [{ owner: "acme", repo: "", commit: COMMIT }]],
    [
      "the same repository twice",
      [
        { owner: "acme", repo: "app", commit: COMMIT },
        { owner: "Acme", repo: "app", commit: COMMIT },
      ],
    ],
  ])("with %s are refused", async (_what, repositories) => {
    await expect(trial(repositories)).rejects.toEqual(domainError({ reason: "pinned_repository_invalid" }));
  });
});

test("every run below a benchmark trial inherits its pinned commits and its overrides of agents; others do not", async () => {
  const pinnedRepositories = [{ owner: "acme", repo: "app", commit: COMMIT }];
  const agentOverrides = { [newUid()]: { model_id: "scripted" } };
  const frozenOf = async (uid: string) =>
    (
      await p.database.sql.query<{ trial: unknown }>("SELECT frozen -> 'trial' AS trial FROM runs WHERE uid = $1", [
        uid,
      ])
    ).rows[0]!.trial;
  const trial = await p.run(scoring, { ...owned(), source: "BENCHMARK_TRIAL", pinnedRepositories, agentOverrides });
  const child = await p.run(person, { parentRunUid: trial.uid });
  const grandchild = await p.run(person, { parentRunUid: child.uid });
  const inherited = { pinned_repositories: pinnedRepositories, agent_overrides: agentOverrides };
  expect(await Promise.all([trial, child, grandchild].map(({ uid }) => frozenOf(uid)))).toEqual([
    inherited,
    inherited,
    inherited,
  ]);
  const unrelated = await p.run(person);
  expect([
    await frozenOf(unrelated.uid),
    await frozenOf((await p.run(person, { parentRunUid: unrelated.uid })).uid),
  ]).toEqual([null, null]);
  for (const { uid } of [trial, unrelated]) await p.life.cancelRun(person, { runUid: uid, tree: true });
});

describe("in the queue", () => {
  test.each(["RUN_SCORER", "BENCHMARK_TRIAL"])(
    "a run with the source %s is claimed after a later run of a user, and does not wait for ever",
    async (source) => {
      const background = await p.run(scoring, { ...owned(), source });
      const foreground = await p.run(person);
      expect([
        await p.life.getQueueStatus(person, foreground.uid),
        await p.life.getQueueStatus(person, background.uid),
      ]).toMatchObject([{ position: 1 }, { position: 2 }]);
      const first = await acceptExecution(p, worker);
      expect(first.assignment.job.run.runUid).toBe(foreground.uid);
      await first.complete("DONE");
      await p.database.sql.query(
        "UPDATE executions SET queued_at = queued_at - interval '31 minutes' WHERE run_uid = $1",
        [background.uid],
      );
      const later = await p.run(person);
      const second = await acceptExecution(p, worker);
      expect(second.assignment.job.run.runUid).toBe(background.uid);
      await second.complete("DONE");
      await p.life.cancelRun(person, { runUid: later.uid, tree: false });
    },
  );
});

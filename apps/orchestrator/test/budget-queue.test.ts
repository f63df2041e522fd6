import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { readQueuedLanes } from "../src/leases/store/queue-status-store.ts";
import { explainQueue } from "../src/leases/domain/queue-reason.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { aRun, teamOf } from "./support/platform.ts";

/** A model whose tokens cost one micro-dollar each. */
const MODEL = "gpt-5.1";
const PRICED = { config: { model_id: MODEL } };

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeEach(async () => {
  p = await catalogPlatform({
    modelProviders: [{ provider: "openai", apiKey: "key", baseUrl: "https://models.test/v1" }],
  });
  await p.database.sql.query(
    "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ($1, 99, 1000000, 1000000)",
    [MODEL],
  );
  caller = aCaller();
  worker = await p.worker({ slots: 50 });
});
afterEach(() => p.close());

const queued = (request: Partial<NewRun> = {}, by = caller) => p.run(by, { ...PRICED, ...request });
const status = (uid: string, by = caller) => p.life.getQueueStatus(by, uid);
const reasonOf = async (uid: string) => (await status(uid)).reason;

/** Returns the uids of the runs that the next claim offers. */
async function offered(): Promise<string[]> {
  const { assignments } = await p.life.worker.accept(worker.session, await p.claim(worker, 20));
  return assignments.map(({ job }) => job.run.runUid);
}

let calls = 0;
const spend = ({ ref }: ActiveExecution, tokens: number) =>
  p.workers.reportUsage(
    {
      ...{ executionId: BigInt(ref.executionId), attempt: ref.attempt },
      ...{ callId: `c${(calls += 1)}`, modelId: MODEL, usage: { inputTokens: 0n, outputTokens: BigInt(tokens) } },
    },
    bearer(worker),
  );

type Asked = { scope?: string; scopeUid?: string; period?: string; limitMicros?: bigint };
async function aBudget({ scope = "team", scopeUid = "", period = "total", limitMicros = 100n }: Asked = {}) {
  const { budget } = await p.budgets.createBudget(
    { teamUid: teamOf(caller), scope, scopeUid, period, limitMicros },
    p.as(caller),
  );
  return budget!.uid;
}
const setLimit = (uid: string, limitMicros: bigint) =>
  p.budgets.updateBudget({ teamUid: teamOf(caller), uid, limitMicros }, p.as(caller));

/** Creates a budget and a run that spends all of it. */
async function anExhaustedBudget(asked: Asked = {}, request: Partial<NewRun> = {}): Promise<[string, ActiveExecution]> {
  const uid = await aBudget(asked);
  await queued(request);
  const spender = await startExecution(p, worker);
  await spend(spender, 100);
  return [uid, spender];
}

/** Changes the rows as if the budget's period had ended. */
const endPeriod = (uid: string) =>
  p.database.sql.query(
    `WITH ended AS (UPDATE budget_periods SET period_start = period_start - interval '1 day' WHERE budget_uid = $1)
     UPDATE budgets SET exhausted_until = now() - interval '1 second' WHERE uid = $1`,
    [uid],
  );

test("does not offer a run while a budget that covers it is exhausted, and returns which budget", async () => {
  const [uid] = await anExhaustedBudget();
  const { uid: run } = await queued();
  expect(await offered()).toEqual([]);
  expect(await status(run)).toMatchObject({
    state: "QUEUED",
    reason: "budget_exhausted",
    message: `The total budget ${uid} of the team is exhausted: $0.0001 of $0.0001 is spent. It does not reset.`,
    budgets: [{ budget: { uid }, spentMicros: 100n, limitMicros: 100n }],
  });
});

test.each<[string, (uid: string) => Promise<unknown>]>([
  ["is raised", (uid) => setLimit(uid, 101n)],
  ["is deleted", (uid) => p.budgets.deleteBudget({ teamUid: teamOf(caller), uid }, p.as(caller))],
  ["starts its next period", endPeriod],
])("offers a waiting run again when its budget %s", async (_how, fund) => {
  const [uid] = await anExhaustedBudget({ period: "day" });
  const { uid: run } = await queued();
  expect([await offered(), await p.life.requeueOnce(), await offered()]).toEqual([[], 0, []]);
  await fund(uid);
  expect([await reasonOf(run), await p.life.requeueOnce(), await offered()]).toEqual(["none", 1, [run]]);
});

test("a run that waited for one budget waits for the next exhausted one", async () => {
  const total = await aBudget({ limitMicros: 50n });
  const [daily] = await anExhaustedBudget({ period: "day" });
  const { uid: run } = await queued();
  expect(await offered()).toEqual([]);
  await setLimit(total, 1_000n);
  expect([await p.life.requeueOnce(), await offered(), await p.life.requeueOnce()]).toEqual([1, [], 0]);
  expect((await status(run)).message).toContain(daily);
  await setLimit(daily, 1_000n);
  expect([await p.life.requeueOnce(), await offered()]).toEqual([1, [run]]);
});

describe("an exhausted budget blocks", () => {
  const CASES = {
    schedule: (uid: string): Partial<NewRun> => ({ schedule: { schedule_id: uid } }),
    automation: (uid: string): Partial<NewRun> => ({ causeKey: `automation/${uid}/${newUid()}` }),
  };

  test.each(["schedule", "automation"] as const)("trees of its %s, and no others", async (scope) => {
    const uid = newUid();
    const [, spender] = await anExhaustedBudget({ scope, scopeUid: uid }, CASES[scope](uid));
    const covered = [
      await queued(CASES[scope](uid)),
      await queued({ parentRunUid: spender.assignment.job.run.runUid }),
    ];
    const others = [await queued(CASES[scope](newUid())), await queued()];
    expect((await offered()).toSorted()).toEqual(others.map((run) => run.uid).toSorted());
    for (const run of covered) expect(await reasonOf(run.uid)).toBe("budget_exhausted");
  });

  test("no run of another team, no personal run, and none whose model costs nothing", async () => {
    await anExhaustedBudget();
    const stranger = aCaller();
    const free = [
      await queued({}, stranger),
      await queued({ owner: { type: "user", uid: caller.principal.uid } }),
      await p.run(caller, { config: { model_id: "scripted" } }),
    ];
    expect((await offered()).toSorted()).toEqual(free.map((run) => run.uid).toSorted());
  });

  test("follow-ups, and runs whose worker was lost", async () => {
    const [uid, spender] = await anExhaustedBudget();
    const run = spender.assignment.job.run.runUid;
    await spender.complete("DONE");
    await p.life.createFollowup(caller, {
      target: { runUid: run },
      message: "Go on.",
      mode: "normal",
      attachmentUids: [],
    });
    expect([await offered(), await reasonOf(run)]).toEqual([[], "budget_exhausted"]);
    await setLimit(uid, 101n);
    await p.life.requeueOnce();
    const lost = await startExecution(p, worker);
    await spend(lost, 1);
    await p.expire(lost.ref.executionId);
    await p.reaperIsAwake();
    await p.life.reapOnce();
    expect([await offered(), await reasonOf(run)]).toEqual([[], "budget_exhausted"]);
    await setLimit(uid, 200n);
    expect([await p.life.requeueOnce(), await offered()]).toEqual([1, [run]]);
  });
});

test("offers runs that may start behind a long backlog of covered runs", async () => {
  const schedule = newUid();
  const own: Partial<NewRun> = { schedule: { schedule_id: schedule } };
  const [uid] = await anExhaustedBudget({ scope: "schedule", scopeUid: schedule }, own);
  await p.life.createRuns(
    caller,
    Array.from({ length: 400 }, () => aRun(caller, { ...PRICED, ...own })),
  );
  const { uid: free } = await queued();
  expect(await offered()).toEqual([free]);
  await setLimit(uid, 200n);
  expect([await p.life.requeueOnce(), (await offered()).length]).toEqual([400, 20]);
});

test("a cancelled run that waited continues with a follow-up once the budget is raised", async () => {
  const [uid] = await anExhaustedBudget();
  const { uid: run } = await queued();
  expect(await offered()).toEqual([]);
  await p.life.cancelRun(caller, { runUid: run, tree: false });
  await setLimit(uid, 200n);
  expect(await p.life.requeueOnce()).toBe(0);
  await p.life.createFollowup(caller, {
    target: { runUid: run },
    message: "Go on.",
    mode: "normal",
    attachmentUids: [],
  });
  await p.life.requeueOnce();
  expect(await offered()).toEqual([run]);
});

test("leaves no run waiting when claims, limit changes and requeueing race", async () => {
  const [uid] = await anExhaustedBudget();
  const created = await p.life.createRuns(
    caller,
    Array.from({ length: 30 }, () => aRun(caller, PRICED)),
  );
  const taken: string[] = [];
  for (let round = 0; round < 10; round += 1) {
    await setLimit(uid, 100n);
    const [offers] = await Promise.all([p.claim(worker, 3), setLimit(uid, 101n), p.life.requeueOnce()]);
    const { assignments } = await p.life.worker.accept(worker.session, offers);
    taken.push(...assignments.map(({ job }) => job.run.runUid));
  }
  await p.life.requeueOnce();
  for (let next = await offered(); next.length > 0; next = await offered()) taken.push(...next);
  expect(taken.toSorted()).toEqual(created.map(({ run }) => run.uid).toSorted());
});

test("a queued run lists the budgets that have reached a threshold, also while it waits for something else", async () => {
  const uid = await aBudget({ limitMicros: 1_000n });
  await aBudget({ limitMicros: 1_000_000n, period: "day" });
  await queued();
  await spend(await startExecution(p, worker), 800);
  const { uid: run } = await queued();
  expect(await status(run)).toMatchObject({
    reason: "none",
    budgets: [{ budget: { uid, thresholdsPercent: [50, 80, 100] }, spentMicros: 800n }],
  });
  expect((await status(run)).budgets).toHaveLength(1);
  expect(await offered()).toEqual([run]);
  expect((await status(run)).budgets).toEqual([]);
});

test("metrics count runs that wait for a budget separately", async () => {
  await anExhaustedBudget();
  await queued();
  await queued();
  expect(await offered()).toEqual([]);
  const lanes = await readQueuedLanes(p.database.sql, p.timings.leaseTtlMs);
  expect(lanes.map(({ queued: count, facts }) => [count, explainQueue(facts).reason])).toEqual([
    [2, "budget_exhausted"],
  ]);
});

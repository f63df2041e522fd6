import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { manualClock, type ManualClock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import { assignmentMessage } from "../src/leases/rpc/worker-messages.ts";
import { DEFAULT_TIMINGS } from "../src/runs/domain/timings.ts";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

/** A model whose tokens cost one micro-dollar each. */
const MODEL = "priced";

let clock: ManualClock;
let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeEach(async () => {
  clock = manualClock("2026-11-25T12:00:00.000Z"); // a Wednesday
  p = await catalogPlatform({ clock });
  await p.database.sql.query(
    "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ($1, 1, 1000000, 1000000)",
    [MODEL],
  );
  caller = aCaller();
  worker = await p.worker({ slots: 20 });
});
afterEach(() => p.close());

const reserve = (execution: ActiveExecution, tokens: number, modelId = MODEL) =>
  p.workers.reserveCost({ ...execution.lease, modelId, inputTokens: 0n, outputTokens: BigInt(tokens) }, bearer(worker));
const outcome = async (execution: ActiveExecution, tokens = 1): Promise<string> =>
  (await reserve(execution, tokens)).outcome;
let calls = 0;
const report = (execution: ActiveExecution, tokens: number, callId = `c${(calls += 1)}`) =>
  p.workers.reportUsage(
    { ...execution.lease, callId, modelId: MODEL, usage: { inputTokens: 0n, outputTokens: BigInt(tokens) } },
    bearer(worker),
  );

type Asked = { scope?: string; scopeUid?: string; period?: string; limitMicros?: bigint; percents?: number[] };
async function aBudget(
  { scope = "team", scopeUid = "", period = "total", limitMicros = 1_000n, percents }: Asked = {},
  by = caller,
) {
  const { budget } = await p.budgets.createBudget(
    { teamUid: teamOf(by), scope, scopeUid, period, limitMicros, thresholds: percents && { percents } },
    p.as(by),
  );
  return budget!;
}
const budgetNow = async (uid: string) =>
  (await p.budgets.getBudget({ teamUid: teamOf(caller), uid }, p.as(caller))).budget!;

async function aStartedRun(request: Partial<NewRun> = {}, by = caller): Promise<ActiveExecution> {
  await p.run(by, request);
  return startExecution(p, worker);
}
const limitedAtStart = (execution: ActiveExecution): boolean =>
  assignmentMessage(execution.assignment, DEFAULT_TIMINGS, 0).costLimited;

describe("the scope of a budget", () => {
  const CASES = {
    schedule: (uid: string): Partial<NewRun> => ({
      schedule: { schedule_id: uid, schedule_name: "Nightly", cron_schedule: "@daily" },
    }),
    automation: (uid: string): Partial<NewRun> => ({ causeKey: `automation/${uid}/${newUid()}` }),
  };

  test("of a team covers all runs of the team, and no run of another team or of a user", async () => {
    const otherCaller = aCaller();
    await aBudget({ limitMicros: 100n });
    const [ours, theirs] = [await aStartedRun(), await aStartedRun({}, otherCaller)];
    expect([limitedAtStart(ours), limitedAtStart(theirs)]).toEqual([true, false]);
    expect([(await report(ours, 100)).costLimited, (await report(theirs, 100)).costLimited]).toEqual([true, false]);
    expect([await outcome(ours), await outcome(theirs)]).toEqual(["exceeded", "granted"]);
    const personal = await aStartedRun({ owner: { type: "user", uid: caller.principal.uid } });
    expect([limitedAtStart(personal), await outcome(personal)]).toEqual([false, "granted"]);
  });

  test.each(["schedule", "automation"] as const)(
    "of a %s covers the trees whose root it created, and no others",
    async (scope) => {
      const uid = newUid();
      await aBudget({ scope, scopeUid: uid, limitMicros: 100n });
      const root = await aStartedRun(CASES[scope](uid));
      const child = await aStartedRun({ parentRunUid: root.assignment.job.run.runUid });
      const [another, manual] = [await aStartedRun(CASES[scope](newUid())), await aStartedRun()];
      expect([root, child, another, manual].map(limitedAtStart)).toEqual([true, true, false, false]);
      await report(child, 60);
      await report(another, 500);
      await report(root, 40);
      expect(await Promise.all([root, child, another, manual].map((execution) => outcome(execution)))).toEqual([
        "exceeded",
        "exceeded",
        "granted",
        "granted",
      ]);
    },
  );

  test("of a factory covers the trees whose root belongs to it, whatever the factories of the runs below", async () => {
    const [factory, elsewhere] = [newUid(), newUid()];
    const { uid } = await aBudget({ scope: "factory", scopeUid: factory });
    const root = await aStartedRun();
    await setFactory(root, factory);
    const child = await aStartedRun({ parentRunUid: root.assignment.job.run.runUid });
    await setFactory(child, elsewhere);
    const [outer] = [await aStartedRun()];
    await setFactory(outer, elsewhere);
    for (const execution of [root, child, outer]) await report(execution, 10);
    expect((await budgetNow(uid)).spentMicros).toBe(20n);
  });

  const setFactory = (execution: ActiveExecution, factory: string) =>
    p.database.sql.query("UPDATE runs SET factory_uid = $2 WHERE uid = $1", [
      execution.assignment.job.run.runUid,
      factory,
    ]);
});

test("refuses the next call of every run under an exhausted budget, with the budget, its limit, the amount spent and the time of its reset", async () => {
  const { uid } = await aBudget({ period: "month", limitMicros: 1_500_000n });
  const [spender, sibling] = [await aStartedRun(), await aStartedRun()];
  await report(spender, 2_000_000);
  const message = `The monthly budget ${uid} of the team is exhausted: $2 of $1.5 is spent. It resets at 2026-12-01T00:00:00.000Z.`;
  for (const execution of [spender, sibling])
    expect(await reserve(execution, 1)).toMatchObject({ outcome: "exceeded", message });
  expect(limitedAtStart(await aStartedRun())).toBe(true);
});

describe("the amount spent includes", () => {
  const stated = (execution: ActiveExecution, costMicros: bigint, access: string) =>
    p.workers.reportUsage(
      {
        ...{ ...execution.lease, callId: `c${(calls += 1)}`, modelId: MODEL, access },
        usage: { inputTokens: 0n, outputTokens: 300n, costMicros },
      },
      bearer(worker),
    );
  const recorded = async () => (await p.database.sql.query("SELECT cost_micros, limited_micros FROM usage_rows")).rows;

  test.each([
    [
      "less than the price, by the team's own endpoint",
      0n,
      "team_endpoint",
      300n,
      { cost_micros: 0, limited_micros: 300 },
    ],
    [
      "more than the price, by the team's own endpoint",
      400n,
      "team_endpoint",
      400n,
      { cost_micros: 400, limited_micros: null },
    ],
    [
      "less than the price, reported by the operator's endpoint",
      7n,
      "operator",
      7n,
      { cost_micros: 7, limited_micros: null },
    ],
    [
      "less than the price, reported by the provider of a team's key",
      7n,
      "team",
      7n,
      { cost_micros: 7, limited_micros: null },
    ],
  ] as const)(
    "for a reported cost that is %s, an amount that a team cannot lower",
    async (_, cost, access, spent, row) => {
      const { uid } = await aBudget();
      await stated(await aStartedRun({ config: { cost_limit_usd: 1 } }), cost, access);
      expect((await budgetNow(uid)).spentMicros).toBe(spent);
      expect(await recorded()).toEqual([row]);
    },
  );

  test("the reservation of a call whose tokens are unknown, as in a cost limit", async () => {
    const { uid } = await aBudget();
    const execution = await aStartedRun({ config: { cost_limit_usd: 0.0005 } });
    expect(await outcome(execution, 500)).toBe("granted");
    await p.workers.reportUsage({ ...execution.lease, callId: "c", modelId: MODEL, usage: {} }, bearer(worker));
    expect((await budgetNow(uid)).spentMicros).toBe(500n);
    expect(await recorded()).toEqual([{ cost_micros: null, limited_micros: 500 }]);
    expect(await outcome(execution)).toBe("exceeded");
  });
});

test("applies several budgets at once: the tightest decides, and its message is returned", async () => {
  const schedule = newUid();
  await aBudget({ limitMicros: 1_000n });
  const day = await aBudget({ period: "day", limitMicros: 300n });
  const own = await aBudget({ scope: "schedule", scopeUid: schedule, period: "day", limitMicros: 200n });
  const [scheduled, manual] = [await aStartedRun({ schedule: { schedule_id: schedule } }), await aStartedRun()];
  await report(scheduled, 200);
  expect([(await reserve(scheduled, 1)).message.includes(own.uid), await outcome(manual)]).toEqual([true, "granted"]);
  await report(manual, 150);
  expect((await reserve(manual, 1)).message).toContain(day.uid);
  expect((await reserve(scheduled, 1)).message).toContain(day.uid); // already exceeded by 50
});

test("enforces a run's own cost limit together with a budget", async () => {
  await aBudget({ limitMicros: 1_000n });
  const limited = await aStartedRun({ config: { cost_limit_usd: 0.0001 } });
  await report(limited, 100);
  expect(await reserve(limited, 1)).toMatchObject({
    outcome: "exceeded",
    message: expect.stringContaining("This run and its descendants have cost"),
  });
});

test("a call waits while calls of other trees may use the rest, and reservations end with their attempt", async () => {
  const { uid } = await aBudget({ limitMicros: 1_000n });
  const [first, second] = [await aStartedRun(), await aStartedRun()];
  expect([await outcome(first, 1_000), await outcome(second)]).toEqual(["granted", "wait"]);
  expect(await budgetNow(uid)).toMatchObject({ spentMicros: 0n, reservedMicros: 1_000n });
  await first.complete("FAILED", {
    error: { code: "resource_unavailable", message: "No answer.", retryable: true, reason: "model_unavailable" },
  });
  expect([await outcome(second, 400), (await budgetNow(uid)).reservedMicros]).toEqual(["granted", 400n]);
  expect((await p.database.sql.query("SELECT execution_id FROM cost_reservations")).rows).toEqual([
    { execution_id: second.ref.executionId },
  ]);
});

test("refuses a model without a price, as a cost limit does", async () => {
  await aBudget();
  await expect(reserve(await aStartedRun(), 1, "unknown")).rejects.toEqual(
    domainError({ reason: "cost_limit_unpriced" }),
  );
});

test("reports a budget that is created during a run in the response to the run's next usage report", async () => {
  const execution = await aStartedRun();
  expect([limitedAtStart(execution), (await report(execution, 50)).costLimited]).toEqual([false, false]);
  const { uid } = await aBudget();
  expect([(await report(execution, 60)).costLimited, (await budgetNow(uid)).spentMicros]).toEqual([true, 60n]);
});

test("counts a call that is reported twice once", async () => {
  const { uid } = await aBudget();
  const execution = await aStartedRun();
  await report(execution, 60, "same");
  await report(execution, 60, "same");
  expect((await budgetNow(uid)).spentMicros).toBe(60n);
});

test("a repeated report does not release the reservation of the next call", async () => {
  const { uid } = await aBudget();
  const execution = await aStartedRun();
  expect(await outcome(execution, 100)).toBe("granted");
  await report(execution, 60, "first");
  expect(await outcome(execution, 200)).toBe("granted");
  await report(execution, 60, "first");
  expect(await budgetNow(uid)).toMatchObject({ spentMicros: 60n, reservedMicros: 200n });
  await report(execution, 150, "next");
  expect(await budgetNow(uid)).toMatchObject({ spentMicros: 210n, reservedMicros: 0n });
});

test("a deleted budget limits nothing, and a raised one permits calls again", async () => {
  const { uid } = await aBudget({ limitMicros: 100n });
  const execution = await aStartedRun();
  await report(execution, 100);
  expect(await outcome(execution)).toBe("exceeded");
  await p.budgets.updateBudget({ teamUid: teamOf(caller), uid, limitMicros: 101n }, p.as(caller));
  expect(await outcome(execution)).toBe("granted");
  await report(execution, 1);
  expect(await outcome(execution)).toBe("exceeded");
  await p.budgets.deleteBudget({ teamUid: teamOf(caller), uid }, p.as(caller));
  expect([await outcome(execution), (await report(execution, 1)).costLimited]).toEqual(["granted", false]);
  expect((await p.database.sql.query("SELECT 1 FROM budget_periods")).rowCount).toBe(0);
});

describe("a create request that is repeated with its key", () => {
  const create = () =>
    p.budgets.createBudget(
      { teamUid: teamOf(caller), scope: "team", period: "day", limitMicros: 1_000n, idempotencyKey: "k" },
      p.as(caller),
    );
  const raiseLimit = (uid: string) =>
    p.budgets.updateBudget({ teamUid: teamOf(caller), uid, limitMicros: 2_000n }, p.as(caller));

  test("returns the budget as it was created, after spending, a change, the end of its period and its deletion", async () => {
    await aBudget();
    const execution = await aStartedRun();
    expect(await outcome(execution, 300)).toBe("granted");
    const first = await create();
    const { uid } = first.budget!;
    expect(first.budget).toMatchObject({ limitMicros: 1_000n, spentMicros: 0n, reservedMicros: 300n });
    await report(execution, 60);
    await raiseLimit(uid);
    clock.advance(24 * 60 * 60 * 1000);
    expect(await budgetNow(uid)).toMatchObject({ limitMicros: 2_000n, reservedMicros: 0n });
    expect(await create()).toEqual(first);
    await p.budgets.deleteBudget({ teamUid: teamOf(caller), uid }, p.as(caller));
    expect(await create()).toEqual(first);
  });

  test("returns the current budget if the previous version stored the result", async () => {
    const { uid } = (await create()).budget!;
    await p.database.sql.query(
      "UPDATE idempotency_keys SET response = jsonb_build_object('uid', response->'uid') WHERE operation = 'budget'",
    );
    await raiseLimit(uid);
    expect((await create()).budget).toMatchObject({ uid, limitMicros: 2_000n });
  });
});

test.each([
  ["day", "2026-11-25T23:59:59.999Z", "2026-11-26T00:00:00.000Z"],
  ["week", "2026-11-28T23:59:59.999Z", "2026-11-29T00:00:00.000Z"],
  ["month", "2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z"],
])("a budget per %s resets at midnight UTC", async (period, last, next) => {
  const { uid, resetsAt } = await aBudget({ period, limitMicros: 100n });
  expect(Number(resetsAt!.seconds) * 1000).toBe(Date.parse(next));
  const execution = await aStartedRun();
  await report(execution, 100);
  clock.set(last);
  expect(await outcome(execution)).toBe("exceeded");
  clock.set(next);
  expect([await outcome(execution, 30), (await budgetNow(uid)).spentMicros]).toEqual(["granted", 0n]);
  await report(execution, 25);
  expect(await budgetNow(uid)).toMatchObject({ spentMicros: 25n, reservedMicros: 0n });
});

describe("thresholds", () => {
  const reached = async () => {
    const { rows } = await p.database.sql.query<{
      entity_version: number;
      team_uid: string;
      payload: Record<string, unknown>;
    }>(
      "SELECT entity_version, team_uid, payload FROM stream.event_pending WHERE type = 'millwright.budget.threshold_reached.v1' ORDER BY seq",
    );
    return rows;
  };
  const percents = async () => (await reached()).map(({ payload }) => payload["threshold_percent"]);

  test("are published once per budget and period, in the transaction that records the usage", async () => {
    const { uid } = await aBudget({ period: "day", limitMicros: 100n, percents: [100, 50, 80, 50] });
    const execution = await aStartedRun();
    await report(execution, 49);
    expect(await percents()).toEqual([]);
    await report(execution, 1);
    await report(execution, 1);
    expect(await percents()).toEqual([50]);
    await report(execution, 60);
    await report(execution, 60);
    expect(await percents()).toEqual([50, 80, 100]);
    clock.advance(24 * 60 * 60 * 1000);
    await report(execution, 50);
    expect(await percents()).toEqual([50, 80, 100, 50]);
    const events = await reached();
    expect(events.at(-1)!.payload).toEqual({
      budget_uid: uid,
      scope: "team",
      scope_uid: teamOf(caller),
      period: "day",
      limit_usd: 0.0001,
      threshold_percent: 50,
      spent_usd: 0.00005,
      period_start: "2026-11-26T00:00:00.000Z",
      resets_at: "2026-11-27T00:00:00.000Z",
    });
    expect(events.map(({ entity_version: version }) => version)).toEqual([2, 3, 4, 5]);
  });

  test("that a lower limit crosses are published with the change, and not again after the limit is raised", async () => {
    const { uid } = await aBudget({ limitMicros: 1_000n, percents: [50] });
    await report(await aStartedRun(), 100);
    const change = (limitMicros: bigint) =>
      p.budgets.updateBudget({ teamUid: teamOf(caller), uid, limitMicros }, p.as(caller));
    await change(200n);
    expect(await percents()).toEqual([50]);
    await change(1_000n);
    await report(await aStartedRun(), 500);
    expect(await percents()).toEqual([50]);
  });
});

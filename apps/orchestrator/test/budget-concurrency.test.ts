import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { aCaller, seededRandom } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { ActiveExecution, startExecution } from "./support/fake-worker.ts";
import { aRun, teamOf } from "./support/platform.ts";

/** A model whose tokens cost one micro-dollar each. */
const MODEL = "priced";
const AGENTS = 200;
const LIMIT = 25_000;
const RESERVATION_MAX = 300;

type Agent = {
  readonly execution: ActiveExecution;
  calls: number;
  reserved: number;
  state: "idle" | "calling" | "refused" | "dead";
};

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeEach(async () => {
  p = await catalogPlatform({ poolSize: 12 });
  await p.database.sql.query(
    "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ($1, 1, 1000000, 1000000)",
    [MODEL],
  );
  caller = aCaller();
  worker = await p.worker({ slots: AGENTS + 1 });
});
afterEach(() => p.close());

async function agents(request: Partial<NewRun> = {}): Promise<Agent[]> {
  await p.life.createRuns(
    caller,
    Array.from({ length: AGENTS }, () => aRun(caller, request)),
  );
  const { assignments } = await p.life.worker.accept(worker.session, await p.claim(worker, AGENTS));
  return assignments.map((assignment) => ({
    execution: new ActiveExecution(p, worker.session, assignment),
    calls: 0,
    reserved: 0,
    state: "idle",
  }));
}

async function reserve(agent: Agent, tokens: number): Promise<string> {
  const { outcome } = await p.workers.reserveCost(
    { ...agent.execution.lease, modelId: MODEL, inputTokens: 0n, outputTokens: BigInt(tokens) },
    bearer(worker),
  );
  if (outcome === "granted") Object.assign(agent, { state: "calling", reserved: tokens });
  if (outcome === "exceeded") agent.state = "refused";
  return outcome;
}

async function report(agent: Agent, tokens: number): Promise<void> {
  await p.workers.reportUsage(
    {
      ...agent.execution.lease,
      callId: `c${agent.calls}`,
      modelId: MODEL,
      usage: { inputTokens: 0n, outputTokens: BigInt(tokens) },
    },
    bearer(worker),
  );
  Object.assign(agent, { state: "idle", calls: agent.calls + 1 });
}

/** Recomputes the sums from the rows. */
async function totals() {
  const { rows } = await p.db.database.sql.query<{ spent: number; reserved: number; counted: number }>(
    `SELECT (SELECT coalesce(sum(u.cost_micros), 0)::float8 FROM usage_rows u) AS spent,
            (SELECT coalesce(sum(c.micros), 0)::float8 FROM cost_reservations c JOIN executions e ON e.id = c.execution_id
              WHERE e.attempt = c.attempt AND e.state IN ('CLAIMED', 'RUNNING')) AS reserved,
            (SELECT coalesce(sum(b.spent_micros), 0)::float8 FROM budget_periods b) AS counted`,
  );
  return rows[0]!;
}

/** Terminates connections, as a killed process does: its transactions are rolled back at any point. */
const killConnections = (count: number) =>
  p.db.database.sql.query(
    "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrator test' ORDER BY pid LIMIT $1) chosen",
    [count],
  );

/** Lets every agent call models until the limit is used up, while connections, calls and attempts are lost. */
async function spendAll(
  all: readonly Agent[],
  seed: number,
  check: (sums: Awaited<ReturnType<typeof totals>>) => void,
) {
  const random = seededRandom(seed);
  const outcomes = new Set<string>();
  const platform = p;
  while (all.some(({ state }) => state === "idle" || state === "calling")) {
    // Jest lets a timed-out test continue; the next test has executions with the same ids.
    if (p !== platform) throw new Error("This test has timed out, and the next one has begun.");
    const [tokens, fates] = [all.map(() => 1 + random.below(RESERVATION_MAX)), all.map(() => random.next())];
    const acts = all.map(async (agent, n) => {
      if (agent.state === "idle") outcomes.add(await reserve(agent, tokens[n]!));
      else if (agent.state === "calling")
        await (fates[n]! < 0.15 ? lose(agent, fates[n]! < 0.07) : report(agent, Math.ceil(agent.reserved * fates[n]!)));
    });
    if (random.chance(0.3)) acts.push(killConnections(2).then(() => undefined));
    await Promise.allSettled(acts); // failed acts are retried in the next round, as workers do
    await p.reaperIsAwake();
    await p.life.reapOnce();
    const sums = await totals();
    expect(sums.spent + sums.reserved).toBeLessThan(LIMIT + RESERVATION_MAX);
    check(sums);
  }
  expect([...outcomes].toSorted()).toEqual(["exceeded", "granted", "wait"]);
  expect(await totals()).toMatchObject({ reserved: 0 });
  expect((await totals()).spent).toBeGreaterThanOrEqual(LIMIT);
}

/** Returns the published thresholds, in order. */
async function publishedThresholds(): Promise<number[]> {
  const { rows } = await p.database.sql.query<{ percent: number }>(
    `SELECT (payload->>'threshold_percent')::integer AS percent FROM stream.event_pending
      WHERE type = 'millwright.budget.threshold_reached.v1' ORDER BY seq`,
  );
  return rows.map(({ percent }) => percent);
}

test.each([1, 2, 3])(
  "200 agents under one budget exceed it by less than one reservation, and each threshold is published once, whatever fails between reserving and recording (seed %i)",
  async (seed) => {
    await p.budgets.createBudget(
      { teamUid: teamOf(caller), scope: "team", period: "total", limitMicros: BigInt(LIMIT) },
      p.as(caller),
    );
    const allAgents = await agents();
    expect(allAgents).toHaveLength(AGENTS);
    await spendAll(allAgents, seed, ({ counted, spent }) => expect(counted).toBe(spent));
    expect(await publishedThresholds()).toEqual([50, 80, 100]);
    const { budgets } = await p.budgets.listBudgets({ teamUid: teamOf(caller) }, p.as(caller));
    expect(budgets[0]!.reservedMicros).toBe(0n);
  },
);

test("200 runs below one run exceed its cost limit by less than one reservation, whatever fails between reserving and recording", async () => {
  const root = await p.run(caller, { config: { cost_limit_usd: LIMIT / 1_000_000 } });
  await startExecution(p, worker);
  const allAgents = await agents({ parentRunUid: root.uid });
  expect(allAgents).toHaveLength(AGENTS);
  await spendAll(allAgents, 4, () => undefined);
});

/** Ends an agent's attempt without completing its call: the attempt fails, or its worker is lost. */
async function lose(agent: Agent, isReaped: boolean): Promise<void> {
  if (isReaped) await p.expire(agent.execution.ref.executionId);
  else
    await agent.execution.complete("FAILED", {
      error: { code: "resource_unavailable", message: "No answer.", retryable: true, reason: "model_unavailable" },
    });
  agent.state = "dead";
}

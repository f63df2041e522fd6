import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually, seededRandom } from "@millwright/testing";
import { ChaosCluster, type Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { isStandalone, onDeployments, SLOW_MS, startPlatform } from "./support/deployment.ts";
import { TestWorker, type Assignment } from "./support/test-worker.ts";
import { startRun } from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

/** Fewer agents if no service is killed. */
const AGENTS = isStandalone() ? 40 : 200;
/** Concurrent leases of one worker. */
const SLOTS = AGENTS / 4;
const MODEL = "claude-opus-5-5";
/** Price of one output token in micro-dollars. */
const PRICE = 20;
const TOKENS_MAX = 300;
const RESERVATION_MAX = TOKENS_MAX * PRICE;
const LIMIT = AGENTS * 5_000;
/** Number of attempts that reserve a call and then send no further request. */
const DEATHS = AGENTS / 10;

type Agent = { readonly worker: TestWorker; readonly assignment: Assignment; isAlive: boolean };

const micros = (dollars: number): number => Math.round(dollars * 1_000_000);

onDeployments(["standalone"], (deployment) => {
  let platform: Deployment;
  let api: Client;
  let budgets: string;
  beforeAll(async () => {
    const env = { ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: "http://127.0.0.1:9" }; // No test calls this address.
    platform = await startPlatform({ env, timeScale: 5 }, deployment);
    api = await connect(platform);
    const team = await teamOf(api);
    budgets = `/team/${team}/budgets`;
    await api.patch(`/team/${team}`, { concurrency_limit: AGENTS });
  });
  afterAll(() => platform?.remove());

  test("changes of budgets are in the audit log of the team", async () => {
    const audit = budgets.replace(/budgets$/, "audit");
    const { uid } = await api.post(budgets, { scope: "team", period: "month", limit_usd: 1_000 });
    await api.patch(`${budgets}/${uid}`, { limit_usd: 2_000 });
    await api.delete(`${budgets}/${uid}`);
    const entries = await eventually(
      async () => {
        const page = await api.get(`${audit}?limit=100`);
        const found = page.entries.filter((entry: any) => entry.entity_uid === uid);
        return found.length >= 3 && found;
      },
      { timeoutMs: SLOW_MS },
    );
    expect(entries.map(({ type }: any) => type).toSorted()).toEqual([
      "millwright.budget.created.v1",
      "millwright.budget.deleted.v1",
      "millwright.budget.updated.v1",
    ]);
  });

  const random = seededRandom(1);

  /** Spends until the budget rejects a call. An agent that dies leaves its reservation and its lease behind. */
  async function work(agent: Agent, dies: boolean): Promise<void> {
    try {
      await spend(agent, dies);
    } catch (error) {
      // The worker could not renew the lease while services were down.
      if (!String(error).includes("lease_lost")) throw error;
    }
    agent.isAlive = false;
  }

  async function spend(agent: Agent, dies: boolean): Promise<void> {
    const { worker, assignment } = agent;
    const lease = { executionId: assignment.executionId, attempt: assignment.attempt };
    for (let call = 1; ; call += 1) {
      const tokens = await nextTokens();
      const asked = { ...lease, modelId: MODEL, inputTokens: "0", outputTokens: String(tokens) };
      const { outcome, message } = await worker.call("ReserveCost", asked);
      if (outcome === "wait") await pause(50);
      if (outcome === "exceeded") {
        const error = { code: "budget_exceeded", message, reason: "cost_limit" };
        return worker.complete(lease, "FAILED", { error });
      }
      if (outcome !== "granted") continue;
      if (dies) return;
      const usage = { inputTokens: "0", outputTokens: String(Math.max(1, random.below(tokens + 1))) };
      await worker.call("ReportUsage", { ...lease, callId: `c${call}`, modelId: MODEL, usage });
    }
  }

  /**
   * Returns the tokens of the next call. Calls are small from half of the budget on until enough orchestrators were
   * killed, so that the kills happen before the budget is spent.
   */
  async function nextTokens(): Promise<number> {
    if (!(platform instanceof ChaosCluster) || killsOf(platform, "orchestrator") >= 2) return tokensOf();
    const { spent_usd: spent } = await theBudget();
    return micros(spent) < LIMIT / 2 ? tokensOf() : 1;
  }
  const tokensOf = (): number => 1 + random.below(TOKENS_MAX);

  const theBudget = async (): Promise<any> => (await api.get(budgets)).budgets[0];

  /**
   * Starts as many runs as agents, each leased by one of the workers, and adds an agent per lease. Returns the runs.
   */
  async function startAgents(workers: readonly TestWorker[], agents: Agent[]): Promise<string[]> {
    const runs: string[] = [];
    const config = { worker_host: "by-hand", model_id: MODEL };
    while (runs.length < AGENTS)
      runs.push(...(await Promise.all(workers.map(() => startRun(api, "Spend.", { config })))));
    await eventually(
      async () => {
        for (const worker of workers) agents.push(...(await take(worker)));
        return agents.length === AGENTS;
      },
      { timeoutMs: SLOW_MS },
    );
    await Promise.all(agents.map(({ worker, assignment }) => worker.start(assignment)));
    return runs;
  }

  async function take(worker: TestWorker): Promise<Agent[]> {
    const { offers = [] } = await worker.call("Lease", { freeSlots: SLOTS, waitMs: 200 });
    if (offers.length === 0) return [];
    const { assignments = [] } = await worker.call("Accept", { leases: offers });
    return assignments.map((assignment: Assignment) => ({ worker, assignment, isAlive: true }));
  }

  const renew = (worker: TestWorker, agents: readonly Agent[]): Promise<unknown> =>
    worker.call("Heartbeat", {
      state: "READY",
      freeSlots: SLOTS,
      leases: agents
        .filter((agent) => agent.worker === worker && agent.isAlive)
        .map(({ assignment: { executionId, attempt } }) => ({ executionId, attempt, phase: "RUNNING" })),
    });

  test(
    "concurrent agents exceed a budget by less than one reservation, and its spend equals the cost of their runs",
    async () => {
      const { uid } = await api.post(budgets, { scope: "team", period: "total", limit_usd: LIMIT / 1_000_000 });
      const workers: TestWorker[] = [];
      while (workers.length < AGENTS / SLOTS) workers.push(await TestWorker.register(api));
      const agents: Agent[] = [];
      const stopped = new AbortController();
      const every = async (ms: number, step: () => Promise<unknown>): Promise<void> => {
        for (; !stopped.signal.aborted; await pause(ms)) await step();
      };
      const heartbeats = workers.map((worker) => every(10_000 / platform.timeScale, () => renew(worker, agents)));
      const highest = { committed: 0 };
      const watching = every(200, async () => {
        const { spent_usd: spent, reserved_usd: reserved } = await theBudget();
        highest.committed = Math.max(highest.committed, micros(spent) + micros(reserved));
      });
      try {
        const runs = await startAgents(workers, agents);
        await Promise.all(agents.map((agent, n) => work(agent, n < DEATHS)));
        const released = await eventually(
          async () => {
            const budget = await theBudget();
            return budget.reserved_usd === 0 && budget;
          },
          { timeoutMs: SLOW_MS },
        );
        expect(released.uid).toBe(uid);
        expect(micros(released.spent_usd)).toBeGreaterThanOrEqual(LIMIT);
        expect(Math.max(highest.committed, micros(released.spent_usd))).toBeLessThan(LIMIT + RESERVATION_MAX);
        const costs = await Promise.all(runs.map((run) => api.get(`/agent/runs/${run}`)));
        const ledger = costs.reduce((sum, run) => sum + micros(run.request_usage?.inference_cost_usd ?? 0), 0);
        expect(ledger).toBe(micros(released.spent_usd));
        const queued = costs.filter(({ state }) => state === "QUEUED");
        expect(queued.length).toBeGreaterThanOrEqual(DEATHS);
        for (const { run_id: run } of queued)
          expect((await api.get(`/agent/runs/${run}/queue`)).reason).toBe("budget_exhausted");
      } finally {
        stopped.abort();
        await Promise.all([...heartbeats, watching]);
      }
    },
    SLOW_MS,
  );
});

const killsOf = ({ kills }: ChaosCluster, service: string): number =>
  kills.filter((name) => name.startsWith(service)).length;

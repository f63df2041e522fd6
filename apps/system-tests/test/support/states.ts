import { randomUUID } from "node:crypto";
import type { Client } from "./client.ts";
import type { Assignment, TestWorker, Lease } from "./test-worker.ts";
import { startRun } from "./runs.ts";

export type RunInState = { runId: string; lease: Lease; assignment?: Assignment };

/** Active states of a run. "waiting" is INPROGRESS without a lease, until its child ends. */
export const LIVE = ["QUEUED", "PENDING", "CLAIMED", "INPROGRESS", "waiting"] as const;
export const ENDED = ["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"] as const;
const OUTCOMES: Record<string, [string, object]> = {
  SUCCEEDED: ["DONE", {}],
  FAILED: ["FAILED", { error: { code: "agent_reported_failure", message: "no" } }],
  ERROR: ["ERROR", { error: { code: "infrastructure_timeout", message: "late" } }],
  BLOCKED: ["BLOCKED", { message: "Which?" }],
};

/** Returns the state as the API shows it. */
export const shown = (state: string): string =>
  state === "waiting" || state === "LOCAL" || state === "third-party" ? "INPROGRESS" : state;

/** Puts runs into any state with a worker controlled by the test. */
export class States {
  readonly #api: Client;
  readonly #worker: TestWorker;
  /** Offers made during the current test; those it did not accept must not reach the next test. */
  readonly #offered: Lease[] = [];

  constructor(api: Client, worker: TestWorker) {
    this.#api = api;
    this.#worker = worker;
  }

  async offer(): Promise<Lease> {
    const lease = await this.#worker.offer();
    this.#offered.push(lease);
    return lease;
  }

  /**
   * Creates a run in a state of LIVE or ENDED. "LOCAL" is INPROGRESS, executed by its client; "third-party" is
   * INPROGRESS with an external harness.
   */
  async createRunIn(state: string): Promise<RunInState> {
    const nothing = { executionId: "0", attempt: 0 };
    if (state === "LOCAL") {
      const { run_id: runId } = await this.#api.post("/agent/runs/local", {
        client_id: randomUUID(),
        command: ["true"],
      });
      return { runId, lease: nothing };
    }
    const runId = await startRun(
      this.#api,
      "Do it.",
      state === "third-party" ? { config: { harness: { type: "claude" } } } : {},
    );
    if (state === "QUEUED") return { runId, lease: nothing };
    const lease = await this.offer();
    if (state === "PENDING") return { runId, lease };
    const assignment = (await this.#worker.accept(lease))!;
    const brought = { runId, lease, assignment };
    if (state === "CLAIMED") return brought;
    await this.#worker.start(assignment);
    if (state === "waiting") {
      await this.aChild(brought);
      await this.#worker.complete(lease, "WAITING", { waitFor: { policy: "all" } });
    } else if (state === "CANCELLED") {
      await this.#api.post(`/agent/runs/${runId}/cancel`);
      await this.#worker.complete(lease, "CANCELLED");
    } else if (shown(state) !== "INPROGRESS") {
      await this.#worker.complete(lease, ...OUTCOMES[state]!);
    }
    return brought;
  }

  async aChild({ assignment }: RunInState): Promise<string> {
    return (await this.#api.post("/agent/runs", { prompt: "Help." }, { key: assignment!.runToken })).run_id;
  }

  /** Declines open offers and cancels active runs, so that no other test receives them. */
  async clear(): Promise<void> {
    for (const lease of this.#offered.splice(0)) await this.#worker.decline(lease);
    const { runs } = await this.#api.get(
      "/agent/runs?state=QUEUED&state=CLAIMED&state=INPROGRESS&state=PENDING&execution_location=REMOTE&limit=500",
    );
    // Cancelling a root run also cancels its children, including those that are offered.
    const roots = runs.filter((run: any) => run.parent_run_id === undefined).concat(runs);
    for (const { run_id: id } of roots) await this.#api.call("POST", `/agent/runs/${id}/cancel?tree=true`);
  }
}

import type { Assignment } from "../../src/runs/domain/assignment.ts";
import type { WorkerEventKind } from "../../src/runs/domain/run-events.ts";
import type { JsonObject, Outcome } from "../../src/runs/domain/run.ts";
import type { Wait } from "../../src/runs/domain/run-change.ts";
import type { WorkerSession } from "../../src/runs/domain/worker-session.ts";
import type { Completion } from "../../src/runs/usecases/end-execution.ts";
import type { TestPlatform } from "./platform.ts";

type Worker = { readonly token: string; readonly session: WorkerSession };

/** One accepted execution, driven as by a worker. */
export class ActiveExecution {
  readonly platform: TestPlatform;
  readonly session: WorkerSession;
  readonly assignment: Assignment;
  clientSeq = 0;

  constructor(platform: TestPlatform, session: WorkerSession, assignment: Assignment) {
    this.platform = platform;
    this.session = session;
    this.assignment = assignment;
  }

  get ref() {
    return { executionId: this.assignment.executionId, attempt: this.assignment.attempt };
  }

  /** The execution and its attempt, as in messages of the worker protocol. */
  get lease() {
    return { executionId: BigInt(this.assignment.executionId), attempt: this.assignment.attempt };
  }

  event(kind: WorkerEventKind, payload: JsonObject = {}) {
    return { clientSeq: ++this.clientSeq, at: new Date(), kind, payload };
  }

  async append(...events: ReturnType<ActiveExecution["event"]>[]) {
    const [result] = await this.platform.life.worker.append(this.session, [{ ...this.ref, events }]);
    return result!;
  }

  /** Starts the agent and delivers its inputs. */
  async start(): Promise<this> {
    const begun = [
      this.event("sandbox_ready", { kind: "none" }),
      this.event("agent_started", { session_id: "session" }),
    ];
    await this.append(
      ...begun,
      ...this.assignment.inputs.map(({ uid, text }) => this.event("message", { role: "user", text, message_uid: uid })),
    );
    return this;
  }

  async complete(outcome: Outcome, more: Partial<Completion> & { waitFor?: Wait } = {}) {
    const [result] = await this.platform.life.worker.complete(this.session, [
      { ...this.ref, outcome, lastClientSeq: this.clientSeq, ...more },
    ]);
    return result!;
  }

  async heartbeat(ackedDirectiveSeq = 0) {
    const request = {
      state: "READY" as const,
      freeSlots: 0,
      leases: [{ ...this.ref, phase: "RUNNING", ackedDirectiveSeq }],
    };
    return this.platform.life.worker.heartbeat(this.session, request);
  }
}

/** Claims and accepts one execution. */
export async function acceptExecution(platform: TestPlatform, worker: Worker): Promise<ActiveExecution> {
  const offers = await platform.claim(worker);
  if (offers.length === 0) throw new Error("nothing was offered");
  const { assignments } = await platform.life.worker.accept(worker.session, offers);
  if (!assignments[0]) throw new Error("the offer was lost");
  return new ActiveExecution(platform, worker.session, assignments[0]);
}

export const startExecution = async (platform: TestPlatform, worker: Worker): Promise<ActiveExecution> =>
  (await acceptExecution(platform, worker)).start();

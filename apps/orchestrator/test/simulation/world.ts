import { frozenFor } from "../support/platform.ts";
import type { Caller } from "@millwright/caller";
import { DomainError, isDomainError } from "@millwright/errors";
import type { Job } from "../../src/runs/domain/assignment.ts";
import type { Directive } from "../../src/runs/domain/directive.ts";
import type { NewRun } from "../../src/runs/domain/new-run.ts";
import type { CapacityDefaults } from "../../src/catalog/domain/queue-settings.ts";
import { DEFAULT_QUEUE_SETTINGS } from "../../src/catalog/domain/queue-settings.ts";
import type { InRunTransaction } from "../../src/runs/store/run-transaction.ts";
import type { RunOfExecution } from "../../src/runs/domain/run-change.ts";
import type { Run } from "../../src/runs/domain/run.ts";
import type { LeaseRef, RenewedLease, WorkerSession } from "../../src/runs/domain/worker-session.ts";
import { acceptOffers } from "../../src/leases/usecases/accept-offers.ts";
import { appendEvents, type EventBatch } from "../../src/runs/usecases/append-events.ts";
import { cancelRun, type CancelRequest } from "../../src/runs/usecases/cancel-run.ts";
import { completeExecutions } from "../../src/runs/usecases/complete-executions.ts";
import type { Completion } from "../../src/runs/usecases/end-execution.ts";
import { createFollowup, type FollowupRequest } from "../../src/conversations/usecases/create-followup.ts";
import { createRuns } from "../../src/runs/usecases/create-runs.ts";
import { declineOffers } from "../../src/leases/usecases/decline-offers.ts";
import { heartbeat, type Heartbeat, type ReportedLease } from "../../src/leases/usecases/heartbeat.ts";
import { interruptRun } from "../../src/runs/usecases/interrupt-run.ts";
import { reap } from "../../src/leases/usecases/reap.ts";
import { returnLeases } from "../../src/leases/usecases/return-leases.ts";
import type { RunTarget } from "../../src/runs/usecases/run-target.ts";
import type { ReaperTick } from "../../src/leases/domain/reaper-tick.ts";
import type { SessionRow } from "./rows.ts";
import type { RawView } from "./view.ts";

/** Concurrency limits; small, so that they are reached all the time. */
export const CAPS: CapacityDefaults = { team: 4, agent: 2, factory: 3 };

/** The store of the use cases: in memory, or in SQL. Each call is one transaction, or one statement on its own. */
export type World = {
  readonly runs: InRunTransaction;
  claim(session: WorkerSession, slots: number): Promise<readonly LeaseRef[]>;
  runsOfExecutions(executionIds: readonly number[]): Promise<ReadonlyMap<number, RunOfExecution>>;
  findJobs(session: WorkerSession, leases: readonly LeaseRef[]): Promise<ReadonlyMap<number, Job>>;
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
  renewLeases(session: Pick<WorkerSession, "uid">, leases: readonly ReportedLease[]): Promise<readonly RenewedLease[]>;
  ackDirectives(
    session: Pick<WorkerSession, "uid">,
    acks: readonly (LeaseRef & { readonly seq: number })[],
  ): Promise<void>;
  listPendingDirectives(session: Pick<WorkerSession, "uid">): Promise<readonly Directive[]>;
  tick(afterExecutionId: number): Promise<ReaperTick>;
  findVisibleRun(caller: Caller, uid: string): Promise<Run | undefined>;
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;

  addSession(session: SessionRow): Promise<WorkerSession>;
  /** Lets a lease expire: it is lost unless it is renewed before the next tick of the reaper. */
  expire(executionId: number): Promise<void>;
  /** Ends the grace period of a stopping execution. */
  endGrace(executionId: number): Promise<void>;
  raw(): Promise<RawView>;
  close(): Promise<void>;
};

export type UseCases = ReturnType<typeof useCasesOf>;

/**
 * Returns the product's use cases over a world. `step` waits for its turn before each call, so that any order of
 * transactions can be tried.
 */
export function useCasesOf(world: World, step: <T>(call: () => Promise<T>) => Promise<T>) {
  const runs: InRunTransaction = (f) => step(() => world.runs(f));
  const getVisibleRun = (caller: Caller, uid: string) => step(() => world.getVisibleRun(caller, uid));
  const findRunOfLease = (session: WorkerSession, lease: LeaseRef) => step(() => world.findRunOfLease(session, lease));
  const unused = async (): Promise<undefined> => undefined;
  const never = async (): Promise<never> => Promise.reject(new Error("no files are sent here"));
  return {
    createRun: async (caller: Caller, request: NewRun) => {
      const [created] = await createRuns(
        {
          runs,
          sharedRuns: runs,
          capacityDefaults: CAPS,
          resolveRun: async (_caller, asked) => ({
            agentConfig: {},
            frozen: { ...frozenFor(asked), failure_session_retention_minutes: 30 },
            executorUid: asked.agentUid ?? asked.owner.uid,
            queueSettings: {
              team: DEFAULT_QUEUE_SETTINGS,
              agent: DEFAULT_QUEUE_SETTINGS,
              factory: DEFAULT_QUEUE_SETTINGS,
            },
          }),
          findVisibleRun: (who, uid) => step(() => world.findVisibleRun(who, uid)),
          findLeftWorkspace: unused,
          findTrialSettings: unused,
          findNewestOfConversation: unused,
          findByCauses: async () => [],
          firstResult: unused,
          blobs: { put: never, delete: unused },
          log: { warn: () => {} },
          findRun: unused,
        },
        caller,
        [request],
      );
      return created!.run.uid;
    },
    followUp: (caller: Caller, request: FollowupRequest) =>
      createFollowup(
        {
          runs,
          getVisibleRun,
          findNewestOfConversation: unused,
          listSharedRuns: async () => [],
          findPrepared: never,
          settlePrepared: unused,
          firstResult: unused,
          blobs: { get: unused, put: never },
        },
        caller,
        request,
      ),
    cancel: (caller: Caller, request: CancelRequest) =>
      cancelRun({ runs, getVisibleRun, timings: { offerTtlMs: 1_000 } }, caller, request),
    interrupt: (caller: Caller, target: RunTarget) =>
      interruptRun(
        { runs, getVisibleRun, findNewestOfConversation: unused, listSharedRuns: async () => [] },
        caller,
        target,
      ),
    claim: (session: WorkerSession, slots: number) => step(() => world.claim(session, slots)),
    accept: (session: WorkerSession, offers: readonly LeaseRef[], failing: boolean) =>
      acceptOffers(
        {
          runs,
          findJobs: (who, leases) => step(() => world.findJobs(who, leases)),
          prepareAssignment: async () => (failing ? Promise.reject(secretMissing) : { repositories: [], secrets: {} }),
          mintRunToken: async () => "token",
          downloadUrl: async () => "",
        },
        session,
        offers,
      ),
    decline: (session: WorkerSession, offers: readonly LeaseRef[]) => declineOffers({ runs }, session, offers),
    returnLease: (session: WorkerSession, lease: LeaseRef, isFailure: boolean) =>
      returnLeases({ runs }, session, [
        { ...lease, reason: isFailure ? "sandbox_start_failed" : "worker_stopping", message: "", isFailure },
      ]),
    append: async (session: WorkerSession, batch: EventBatch) =>
      (await appendEvents({ runs, findRunOfLease }, session, [batch]))[0]!,
    complete: async (session: WorkerSession, completion: Completion) =>
      (
        await completeExecutions(
          { runs, runsOfExecutions: (ids) => step(() => world.runsOfExecutions(ids)) },
          session,
          [completion],
        )
      )[0]!,
    heartbeat: (session: WorkerSession, request: Heartbeat) =>
      heartbeat(
        {
          touchSession: unused,
          renewLeases: (who, leases) => step(() => world.renewLeases(who, leases)),
          ackDirectives: (who, acks) => step(() => world.ackDirectives(who, acks)),
          listPendingDirectives: (who) => step(() => world.listPendingDirectives(who)),
          downloadUrl: async () => "",
          mintRunToken: async () => "token",
          watchDispatches: async () => [],
        },
        session,
        request,
      ),
    reap: () => reap({ runs, tick: (after) => step(() => world.tick(after)), findExceededLimits: async () => [] }),
  };
}

/** The error if a secret is missing while a run is being accepted. */
const secretMissing = new DomainError({ kind: "not_found", reason: "secret_not_found", message: "No such secret." });

/** Returns the result, or the reason of a domain error. Throws all other errors. */
export async function answered<T>(answer: Promise<T>): Promise<T | { refused: string }> {
  return answer.catch((error: unknown) => {
    if (isDomainError(error)) return { refused: error.reason };
    throw error;
  });
}

import { buffer } from "node:stream/consumers";
import type { Blob, BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { BackgroundLoop, isTransient, type Database, type Sql } from "@millwright/database";
import { bestEffort } from "@millwright/errors";
import type { ReplicaNotifier, ReplicaBroadcast } from "@millwright/events";
import type { Logger } from "@millwright/telemetry";
import { Wakeups } from "./storage/wakeups.ts";
import { LiveTexts } from "./runs/live-texts.ts";
import { publishTextDelta, type TextPiece } from "./runs/usecases/publish-text-delta.ts";
import type { Job } from "./runs/domain/assignment.ts";
import { OFFER_TOKEN_PREFIX } from "./leases/domain/offer-token.ts";
import type { LocalStart } from "./runs/domain/local-run.ts";
import type { NewRun } from "./runs/domain/new-run.ts";
import type { CapacityDefaults, QueueSettings, ScopeSettings } from "./catalog/domain/queue-settings.ts";
import type { AnnouncedFile, PreparedAttachment } from "./conversations/domain/prepared-attachment.ts";
import type { AssignmentDetails, ResolvedRun, ResolveRunRequest } from "./runs/domain/resolved-run.ts";
import type { Run } from "./runs/domain/run.ts";
import type { RunTokenClaims } from "./runs/domain/run-token.ts";
import type { ListSharedRuns } from "./runs/domain/session-sharing.ts";
import type { Timings } from "./runs/domain/timings.ts";
import type { LeaseRef, WorkerRegistration, WorkerSession } from "./runs/domain/worker-session.ts";
import { putSettings } from "./runs/store/capacity-store.ts";
import { closeFactory } from "./runs/store/closed-factory-store.ts";
import { findByCauses } from "./runs/store/create-store.ts";
import { findOfferedLease, transferLease, watchDispatches } from "./leases/store/dispatch-store.ts";
import { ackDirectives, pendingDirectives as listPending } from "./runs/store/directive-store.ts";
import { sweepIdempotencyKeys } from "./storage/store/idempotency-store.ts";
import { runOfExecution } from "./runs/store/locked-runs.ts";
import { findRunWithFrozen, findTrialSettings } from "./runs/store/frozen-store.ts";
import { findJob } from "./leases/store/job-store.ts";
import { findLiveLease, findRunOfLease, renewLeases } from "./leases/store/lease-store.ts";
import { findLocalLease, textsOfFollowups, undeliveredFollowups } from "./runs/store/local-run-store.ts";
import { promptFiles, runOfMessage, textsOf } from "./runs/store/message-store.ts";
import { preparedStore } from "./conversations/store/prepared-store.ts";
import { requeueFunded } from "./budgets/store/budget-lanes.ts";
import { readQueueFacts } from "./leases/store/queue-status-store.ts";
import { claim } from "./leases/store/queue-store.ts";
import { findExceededLimits, tickReaper } from "./leases/store/reaper-store.ts";
import { listRunEvents } from "./runs/store/run-events-store.ts";
import { listSharedRuns } from "./runs/store/shared-run-store.ts";
import { currentRunsOfConversations } from "./runs/store/run-list-store.ts";
import {
  countLiveRuns,
  earlierRuns,
  findNewestOfConversation,
  findRun,
  findTitles,
  visibleRunReader,
  liveRunsOfAgent,
} from "./runs/store/run-store.ts";
import { runTransactions, sharedRunTransactions } from "./runs/store/run-transaction.ts";
import {
  endSession,
  findSession,
  markKeyChecked,
  putSession,
  sweepSessions,
  touchSession,
} from "./leases/store/session-store.ts";
import { findLeftWorkspace } from "./runs/store/workspace-store.ts";
import { acceptOffers } from "./leases/usecases/accept-offers.ts";
import { appendEvents, type EventBatch } from "./runs/usecases/append-events.ts";
import { authenticateSession } from "./leases/usecases/authenticate-session.ts";
import { cancelRun, type CancelRequest } from "./runs/usecases/cancel-run.ts";
import { cancelRunsOfAgent, type RunsOfAgent } from "./runs/usecases/cancel-runs-of-agent.ts";
import { checkLease } from "./leases/usecases/check-lease.ts";
import { completeExecutions, type Completion } from "./runs/usecases/complete-executions.ts";
import { continueConversation } from "./conversations/usecases/continue-conversation.ts";
import { createFollowup, type FollowupRequest } from "./conversations/usecases/create-followup.ts";
import { createRuns } from "./runs/usecases/create-runs.ts";
import { declineOffers } from "./leases/usecases/decline-offers.ts";
import { dispatchOffers } from "./leases/usecases/dispatch-offers.ts";
import { failDispatch, type DispatchFailure } from "./leases/usecases/fail-dispatch.ts";
import { getQueueStatus, type GetQueueStatusDeps } from "./leases/usecases/get-queue-status.ts";
import { heartbeat, type Heartbeat, type ModelCallCount } from "./leases/usecases/heartbeat.ts";
import { interruptRun } from "./runs/usecases/interrupt-run.ts";
import type { RunTarget } from "./runs/usecases/run-target.ts";
import { LeaseWork } from "./leases/usecases/lease-work.ts";
import { reportLocalRun, type LocalReport } from "./leases/usecases/report-local-run.ts";
import { retryRun, type RetryRequest } from "./runs/usecases/retry-run.ts";
import { pendingDirectives } from "./leases/usecases/pending-directives.ts";
import { prepareAttachments } from "./conversations/usecases/prepare-attachments.ts";
import { readHistory, type HistoryRequest } from "./leases/usecases/read-history.ts";
import { reap } from "./leases/usecases/reap.ts";
import { returnLeases, type ReturnedLease } from "./leases/usecases/return-leases.ts";
import { registerWorker, type WorkerKey } from "./leases/usecases/register-worker.ts";
import { takeOffer, type NewSession, type TakeOfferDeps } from "./leases/usecases/take-offer.ts";
import { watchDirectives } from "./leases/usecases/watch-directives.ts";

export type RunLifeOptions = {
  readonly database: Database;
  readonly timings: Timings;
  readonly capacityDefaults: CapacityDefaults;
  readonly log: Pick<Logger, "warn" | "error">;
  /** Sends wake-ups of commits to the other replicas. Absent: the other replicas poll every `pollMs`. */
  readonly replicas?: ReplicaNotifier;
  /** Sends text deltas of models to the other replicas. Absent: only watchers at this replica receive them. */
  readonly liveTextBroadcast?: ReplicaBroadcast;
  resolveRun(caller: Caller, request: ResolveRunRequest): Promise<ResolvedRun>;
  readonly readBudgets: GetQueueStatusDeps["readBudgets"];
  /** Errors: agent_not_found. */
  resolveQueueSettings(caller: Caller, request: Pick<ResolveRunRequest, "owner" | "agentUid">): Promise<ScopeSettings>;
  prepareAssignment(job: Job, session: WorkerSession): Promise<AssignmentDetails>;
  mintRunToken(claims: RunTokenClaims): Promise<string>;
  readonly blobs: Pick<BlobStore, "put" | "get" | "delete" | "signDownload" | "signOpenUpload">;
  authenticateKey(key: string): Promise<WorkerKey>;
  sealKey(key: string): string;
  openKey(sealed: string): string;
  /** Counts model calls for metrics. */
  countModelCalls?(counts: readonly ModelCallCount[]): void;
};

const DOWNLOAD_URL_SECONDS = 3600;

/** The interval at which expired idempotency keys, sessions and prepared attachments are deleted. */
const SWEEP_MS = 10 * 60_000;

/** Composes the run life cycle: its use cases over the store, and its background loops (reaper, budgets, sweeper). */
export function composeRuns(options: RunLifeOptions) {
  const { database, timings, log } = options;
  const { sql } = database;
  const wakeups = new Wakeups(options.replicas);
  const liveTexts = new LiveTexts(options.liveTextBroadcast);
  const runs = runTransactions(database, timings);
  const sharedRuns = sharedRunTransactions(runs);
  const downloadUrl = (key: string, contentType: string) =>
    options.blobs.signDownload(key, { contentType, expiresInSeconds: DOWNLOAD_URL_SECONDS });
  const reads = {
    ...visibleRunReader(database),
    findNewestOfConversation: (caller: Caller, uid: string) => findNewestOfConversation(sql, caller, uid),
    listSharedRuns: (...args: Parameters<ListSharedRuns>) => listSharedRuns(sql, ...args),
    findByCauses: (causes: readonly { ownerUid: string; causeKey: string }[]) => findByCauses(sql, causes),
    // the transaction that inserted it has committed
    getRun: async (uid: string): Promise<Run> => (await findRun(sql, uid)) as Run,
    findRunOfLease: (session: WorkerSession, lease: LeaseRef) => findRunOfLease(database.lookups, session, lease),
    listRunEvents: (runUid: string, afterSeq: number, limit: number) => listRunEvents(sql, runUid, afterSeq, limit),
    findLeftWorkspace: (runUid: string) => findLeftWorkspace(sql, runUid),
    findTrialSettings: (runUid: string) => findTrialSettings(sql, runUid),
    earlierRuns: (runUid: string, limit: number) => earlierRuns(sql, runUid, limit),
    textsOfMessages: (uids: readonly string[]) => textsOf(sql, uids),
    pendingDirectives: (session: WorkerSession) =>
      pendingDirectives({ listPending: (uid) => listPending(sql, uid), downloadUrl }, session),
    readQueueFacts: (runUid: string) => readQueueFacts(sql, runUid, timings.leaseTtlMs),
  };
  const files = {
    putFile: async (key: string, data: Uint8Array, contentType: string) =>
      void (await options.blobs.put(key, data, { contentType })),
    readFile: async (key: string) => bytesOf(await options.blobs.get(key), key),
    dropFile: (key: string) =>
      bestEffort("delete a file of a run that was not created", log, () => options.blobs.delete(key)),
  };
  const prepared = {
    uploads: options.blobs,
    insertPrepared: (runUid: string, attachments: readonly PreparedAttachment[]) =>
      preparedStore.insert(sql, runUid, attachments),
    findPrepared: (runUid: string, uids: readonly string[]) => preparedStore.find(sql, runUid, uids),
    settlePrepared: (uid: string, content: { size: number; sha256: string }) => preparedStore.settle(sql, uid, content),
  };
  const decline = (session: WorkerSession, offers: readonly LeaseRef[]) => declineOffers({ runs }, session, offers);
  const polls = new LeaseWork({
    claim: (session, slots) => claim(database, session, slots, timings.offerTtlMs),
    decline,
    wakeups,
    pollMs: timings.pollMs,
  });

  const store = (on: Sql, session: NewSession) =>
    putSession(on, { ...session, ttlMs: timings.sessionTtlMs, absentAfterMs: timings.leaseTtlMs });
  const sessions = {
    authenticateKey: (key: string) => options.authenticateKey(key),
    sealKey: (key: string) => options.sealKey(key),
    openKey: (sealed: string) => options.openKey(sealed),
    putSession: (session: NewSession) => store(sql, session),
    findOfferedLease: (lease: LeaseRef, token: string) => findOfferedLease(sql, lease, token),
    takeOverLease: (...[lease, token, requireOpen, sessionOf]: Parameters<TakeOfferDeps["takeOverLease"]>) =>
      database.transaction(async (tx) => {
        const found = requireOpen(await findOfferedLease(tx, lease, token));
        const session = await store(tx, sessionOf(found));
        if (!found.isTaken) await transferLease(tx, lease, session.uid, timings.leaseTtlMs);
      }),
    findSession: (token: string) => findSession(database.lookups, token, timings.keyCheckMs),
    markKeyChecked: (sessionUid: string) => markKeyChecked(sql, sessionUid),
    endSession: (sessionUid: string) => endSession(sql, sessionUid),
  };
  const leases = {
    touchSession: (session: WorkerSession, reported: { state: string; freeSlots: number }) =>
      touchSession(sql, session.uid, reported),
    renewLeases: (session: WorkerSession, owned: Heartbeat["leases"]) =>
      renewLeases(sql, session.uid, owned, timings.leaseTtlMs),
    watchDispatches: (session: WorkerSession, watched: readonly LeaseRef[]) =>
      watchDispatches(sql, session, watched, timings.leaseTtlMs),
    ackDirectives: (session: WorkerSession, acks: readonly (LeaseRef & { seq: number })[]) =>
      ackDirectives(sql, session.uid, acks),
    mintRunToken: (claims: RunTokenClaims) => options.mintRunToken(claims),
  };
  const reapOnce = () =>
    reap({
      runs,
      tick: (after) => tickReaper(database, timings, after),
      findExceededLimits: (after) => findExceededLimits(sql, timings, after),
    });

  const requeueOnce = () => requeueFunded(database);

  const loops = [
    loop("reaper", timings.reaperTickMs, reapOnce),
    loop("budgets", timings.reaperTickMs, requeueOnce),
    loop("sweeper", SWEEP_MS, () =>
      Promise.all([sweepIdempotencyKeys(sql), sweepSessions(sql), preparedStore.sweep(sql)]),
    ),
  ];
  function loop(component: string, everyMs: number, step: () => Promise<unknown>): BackgroundLoop {
    return new BackgroundLoop({
      everyMs,
      step: () => step().then(() => "idle" as const),
      onError: (error) =>
        log[isTransient(error) ? "warn" : "error"](
          { component, error },
          "a background step failed and will be retried",
        ),
    });
  }
  const stopping = new AbortController();
  let stopListening = (): void => {};

  const claiming = {
    runs,
    findJob: (session: WorkerSession, lease: LeaseRef) => findJob(database.lookups, session, lease),
    prepareAssignment: (job: Job, session: WorkerSession) => options.prepareAssignment(job, session),
  };
  const cancelling = { ...reads, runs, offerTtlMs: timings.offerTtlMs };
  const creating = {
    ...reads,
    ...files,
    runs,
    sharedRuns,
    resolveRun: (caller: Caller, request: ResolveRunRequest) => options.resolveRun(caller, request),
    capacityDefaults: options.capacityDefaults,
  };
  const retrying = {
    ...creating,
    resolveQueueSettings: (caller: Caller, request: Pick<ResolveRunRequest, "owner" | "agentUid">) =>
      options.resolveQueueSettings(caller, request),
    findFrozen: async (uid: string) => (await findRunWithFrozen(sql, uid))?.frozen,
    promptFiles: (uid: string) => promptFiles(sql, uid),
  };
  const reporting = {
    ...reads,
    renewLeases: leases.renewLeases,
    append: (session: WorkerSession, batches: readonly EventBatch[]) =>
      appendEvents({ runs, findRunOfLease: reads.findRunOfLease }, session, batches),
    complete: (session: WorkerSession, completions: readonly Completion[]) =>
      completeExecutions(
        { runs, runOfExecution: (executionId) => runOfExecution(database.lookups, executionId) },
        session,
        completions,
      ),
    findLocalLease: (runUid: string, clientUid: string) => findLocalLease(sql, runUid, clientUid),
    undelivered: (runUid: string, executionId: number) => undeliveredFollowups(sql, runUid, executionId),
    textsOfFollowups: (runUid: string, executionId: number, uids: readonly string[]) =>
      textsOfFollowups(sql, runUid, executionId, uids),
  };
  return {
    wakeups,
    liveTexts,
    createRuns: (caller: Caller, requests: readonly NewRun[]) => createRuns(creating, caller, requests),
    createLocalRun: async (caller: Caller, run: NewRun & { readonly local: LocalStart }) => {
      const [created] = await createRuns(creating, caller, [run]);
      return { ...created!, reportEveryMs: timings.heartbeatMs };
    },
    reportLocalRun: (caller: Caller, report: LocalReport) => reportLocalRun(reporting, caller, report),
    retryRun: (caller: Caller, request: RetryRequest) => retryRun(retrying, caller, request),
    cancelRun: (caller: Caller, request: CancelRequest) => cancelRun(cancelling, caller, request),
    continueConversation: (caller: Caller, request: NewRun) =>
      continueConversation(
        {
          ...creating,
          currentRunsOfConversations: (uids, teamUid) => currentRunsOfConversations(sql, uids, teamUid),
          runOfMessage: (uid) => runOfMessage(sql, uid),
        },
        caller,
        request,
      ),
    createFollowup: (caller: Caller, request: FollowupRequest) =>
      createFollowup({ ...reads, ...prepared, runs }, caller, request),
    prepareAttachments: (caller: Caller, target: RunTarget, announced: readonly AnnouncedFile[]) =>
      prepareAttachments({ ...reads, ...prepared }, caller, target, announced),
    interruptRun: (caller: Caller, target: RunTarget) => interruptRun({ runs, ...reads }, caller, target),
    getQueueStatus: (caller: Caller, runUid: string) =>
      getQueueStatus({ ...reads, readBudgets: (uid) => options.readBudgets(uid) }, caller, runUid),
    getRun: reads.getVisibleRun,
    /** Cancels the active runs of a deleted agent. */
    cancelRunsOfAgent: (agent: RunsOfAgent) =>
      cancelRunsOfAgent(
        {
          liveRunsOfAgent: (uid) => liveRunsOfAgent(sql, uid),
          cancelRun: (caller, request) => cancelRun(cancelling, caller, request),
        },
        agent,
      ),
    countLiveRuns: (factoryUid: string) => countLiveRuns(sql, factoryUid),
    closeFactory: (factoryUid: string, withLiveRuns: boolean) =>
      database.transaction((tx) => closeFactory(tx, factoryUid, withLiveRuns)),
    putQueueSettings: (tx: Sql, scope: "team" | "agent" | "factory", uid: string, settings: QueueSettings) =>
      putSettings(tx, { scope, uid }, settings, options.capacityDefaults),
    getRunTitles: (uids: readonly string[]) => findTitles(sql, uids),
    checkLease: (lease: LeaseRef) =>
      checkLease({ findLiveLease: (ref) => findLiveLease(database.lookups, ref) }, lease),
    worker: {
      register: (key: string, registration: WorkerRegistration) =>
        key.startsWith(OFFER_TOKEN_PREFIX)
          ? takeOffer(sessions, key, registration)
          : registerWorker(sessions, key, registration),
      authenticate: (token: string) => authenticateSession(sessions, token),
      lease: (session: WorkerSession, freeSlots: number, waitMs: number, signal: AbortSignal) =>
        polls.lease(session, freeSlots, Math.min(waitMs, timings.leaseWaitMaxMs), signal),
      accept: (session: WorkerSession, offers: readonly LeaseRef[]) =>
        acceptOffers({ ...claiming, mintRunToken: leases.mintRunToken, downloadUrl }, session, offers),
      dispatch: (session: WorkerSession, offers: readonly LeaseRef[]) => dispatchOffers(claiming, session, offers),
      failDispatch: (session: WorkerSession, failure: DispatchFailure) => failDispatch({ runs }, session, failure),
      decline,
      returnLeases: (session: WorkerSession, returned: readonly ReturnedLease[]) =>
        returnLeases({ runs }, session, returned),
      heartbeat: (session: WorkerSession, report: Heartbeat) =>
        heartbeat(
          {
            ...leases,
            pendingDirectives: reads.pendingDirectives,
            countModelCalls: (counts) => options.countModelCalls?.(counts),
          },
          session,
          report,
        ),
      append: reporting.append,
      publishTextDelta: (session: WorkerSession, piece: TextPiece) =>
        publishTextDelta(
          { ...reads, findLiveLease: (ref) => findLiveLease(database.lookups, ref), live: liveTexts },
          session,
          piece,
        ),
      complete: reporting.complete,
      readHistory: (session: WorkerSession, request: HistoryRequest) => readHistory(reads, session, request),
      watch: (session: WorkerSession, signal: AbortSignal) =>
        watchDirectives(
          {
            pendingDirectives: reads.pendingDirectives,
            wakeups,
            pollMs: timings.pollMs,
            keepAliveMs: timings.keepAliveMs,
          },
          session,
          AbortSignal.any([signal, stopping.signal]),
        ),
    },
    /** Runs one pass of the reaper; for tests. */
    reapOnce,
    /** Queues executions again whose budget is no longer exhausted; for tests. */
    requeueOnce,
    start() {
      stopListening = database.onCommit((announced) => wakeups.notify(announced));
      wakeups.start();
      liveTexts.start();
      for (const backgroundLoop of loops) backgroundLoop.start();
    },
    /** Ends every long poll and stream of workers permanently. Workers reconnect to another process. */
    async stop() {
      stopping.abort();
      polls.stop();
      stopListening();
      wakeups.stop();
      liveTexts.stop();
      await Promise.all(loops.map((backgroundLoop) => backgroundLoop.stop()));
    },
  };
}

/** Returns the bytes of a blob. Errors: internal, if the blob that a row references is missing. */
async function bytesOf(blob: Blob | undefined, key: string): Promise<Uint8Array> {
  if (!blob) throw new Error(`the file ${key} is missing`);
  return buffer(blob.body);
}

export type RunLife = ReturnType<typeof composeRuns>;

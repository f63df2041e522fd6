import type { BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import { BackgroundLoop, isTransient, type Database } from "@millwright/database";
import type { ReplicaBroadcast, ReplicaNotifier } from "@millwright/events";
import type { Logger } from "@millwright/telemetry";
import { requeueFunded } from "./budgets/store/budget-lanes.ts";
import { budgetStore } from "./budgets/store/budget-store.ts";
import { bindRunStores } from "./compose-stores.ts";
import { preparedStore } from "./conversations/store/prepared-store.ts";
import { offerTransactions } from "./leases/store/offer-transaction.ts";
import { claim, hasQueued } from "./leases/store/queue-store.ts";
import { tickReaper } from "./leases/store/reaper-store.ts";
import { sweepSessions } from "./leases/store/session-store.ts";
import type { AcceptOffersDeps } from "./leases/usecases/accept-offers.ts";
import type { AuthenticateSessionDeps } from "./leases/usecases/authenticate-session.ts";
import { declineOffers } from "./leases/usecases/decline-offers.ts";
import type { HeartbeatDeps } from "./leases/usecases/heartbeat.ts";
import { LeaseWork } from "./leases/usecases/lease-work.ts";
import { reap } from "./leases/usecases/reap.ts";
import type { RegisterWorkerDeps } from "./leases/usecases/register-worker.ts";
import type { Timings } from "./runs/domain/timings.ts";
import { LiveTexts } from "./runs/live-texts.ts";
import { runTransactions, sharedRunTransactions } from "./runs/store/run-transaction.ts";
import type { RetryRunDeps } from "./runs/usecases/retry-run.ts";
import { sweepIdempotencyKeys } from "./storage/store/idempotency-store.ts";
import { Wakeups } from "./storage/wakeups.ts";

export type RunOptions = Pick<RetryRunDeps, "resolveRun" | "resolveQueueSettings" | "capacityDefaults"> &
  Pick<AcceptOffersDeps, "prepareAssignment"> &
  Pick<AuthenticateSessionDeps & RegisterWorkerDeps, "authenticateKey" | "openKey" | "sealKey"> &
  Pick<HeartbeatDeps, "mintRunToken" | "countModelCalls"> & {
    readonly database: Database;
    readonly blobs: Pick<BlobStore, "put" | "get" | "delete" | "signDownload" | "signOpenUpload">;
    readonly clock: Clock;
    readonly timings: Timings;
    readonly log: Pick<Logger, "warn" | "error">;
    /** Sends wake-ups of commits to the other replicas. Absent: the other replicas poll every `pollMs`. */
    readonly replicas?: ReplicaNotifier;
    /** Sends text deltas of models to the other replicas. Absent: only watchers at this replica receive them. */
    readonly liveTextBroadcast?: ReplicaBroadcast;
  };

const DOWNLOAD_URL_SECONDS = 3600;

/** The interval at which expired idempotency keys, sessions and prepared attachments are deleted. */
const SWEEP_MS = 10 * 60_000;

/** Composes what the use cases of the life cycle of runs need, and its background loops (reaper, budgets, sweeper). */
export function composeRuns(options: RunOptions) {
  const { database, timings, log } = options;
  const { sql } = database;
  const wakeups = new Wakeups(options.replicas);
  const liveTexts = new LiveTexts(options.liveTextBroadcast);
  const runs = runTransactions(database, timings);
  const leaseWork = new LeaseWork({
    hasQueued: () => hasQueued(sql),
    claim: (session, slots) => claim(database, session, slots, timings.offerTtlMs),
    decline: (session, offers) => declineOffers({ runs }, session, offers),
    wakeups,
    pollMs: timings.pollMs,
    waitMsMax: timings.leaseWaitMaxMs,
  });
  const stopping = new AbortController();
  const stopSignal: AbortSignal = stopping.signal;
  const deps = {
    ...options,
    ...bindRunStores(database, timings),
    sql,
    runs,
    sharedRuns: sharedRunTransactions(runs),
    offers: offerTransactions(database, timings),
    budgets: budgetStore,
    wakeups,
    liveTexts,
    leaseWork,
    stopping: stopSignal,
    tick: (afterExecutionId: number) => tickReaper(database, timings, afterExecutionId),
    downloadUrl: (key: string, contentType: string) =>
      options.blobs.signDownload(key, { contentType, expiresInSeconds: DOWNLOAD_URL_SECONDS }),
  };
  const reapOnce = () => reap(deps);
  const requeueOnce = () => requeueFunded(database);
  const loop = (component: string, everyMs: number, step: () => Promise<unknown>): BackgroundLoop =>
    new BackgroundLoop({
      everyMs,
      step: () => step().then(() => "idle" as const),
      onError: (error) =>
        log[isTransient(error) ? "warn" : "error"](
          { component, error },
          "a background step failed and will be retried",
        ),
    });
  const loops = [
    loop("reaper", timings.reaperTickMs, reapOnce),
    loop("budgets", timings.reaperTickMs, requeueOnce),
    loop("sweeper", SWEEP_MS, () =>
      Promise.all([sweepIdempotencyKeys(sql), sweepSessions(sql), preparedStore.sweep(sql)]),
    ),
  ];
  let stopListening = (): void => {};
  return {
    deps,
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
      leaseWork.stop();
      stopListening();
      wakeups.stop();
      liveTexts.stop();
      await Promise.all(loops.map((backgroundLoop) => backgroundLoop.stop()));
    },
  };
}

/** What the use cases of the life cycle of runs need. */
export type RunDeps = ReturnType<typeof composeRuns>["deps"];

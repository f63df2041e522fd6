import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { events } from "@millwright/contracts";
import { BackgroundLoop, type Database } from "@millwright/database";
import { Consumer, feedReader } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { ServiceOptions } from "@millwright/service";
import type { Logger } from "@millwright/telemetry";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { MARKED, markStale } from "./store/stale-run-store.ts";
import { REFRESH_BATCH, refreshRuns } from "./usecases/refresh-runs.ts";

export type IngestionOptions = {
  readonly tracer: ServiceOptions["tracer"] | undefined;
  readonly wakeups: ServiceOptions["wakeups"] | undefined;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signer: CallerSigner;
  readonly upstreams: { readonly orchestrator: Transport };
  readonly timeScale: number;
};

const CONSUMER = { name: "metrics", source: "orchestrator" };
/** Polling interval for due runs without a notification: planned reads, and runs whose claim was lost. */
const POLL_MS = 2_000;
/** Events of one run within this time cause a single read. */
const REST_MS = 200;

/** Composes the ingestion of run facts: events mark runs as due, and the refresher reads them. */
export function composeIngestion({
  database,
  clock,
  log,
  signer,
  upstreams,
  timeScale,
  tracer,
  wakeups,
}: IngestionOptions) {
  const feed = clientFor(events.EventFeedService, upstreams.orchestrator, { signer });
  const consumer = new Consumer({
    ...CONSUMER,
    read: feedReader(feed, () => call(serviceCaller(signer.service, newUid()))),
    database,
    clock,
    log,
    tracer,
    ...onRunEvents({ clock }),
    wakeups,
  });
  const orchestrator = orchestratorClient(upstreams.orchestrator, signer);
  const deps = { database, clock, log, orchestrator, timeScale };
  const refresher = new BackgroundLoop({
    everyMs: POLL_MS / timeScale,
    restMs: REST_MS / timeScale,
    step: async () => ((await refreshRuns(deps)) === REFRESH_BATCH ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "stale runs were not claimed; it is tried again"),
  });
  const unlisten = database.onCommit((announced) => void (announced.has(MARKED) && refresher.wake()));
  return {
    followed: { feed: CONSUMER, consumer },
    /** What a replay needs of runs. */
    replayedRuns: {
      walk: (pageToken: string) => orchestrator.walk(pageToken),
      /** Marks runs and reads what is due, so that a replay goes no faster than its runs are read. */
      async refresh(runUids: readonly string[]): Promise<void> {
        const now = clock.now();
        await database.transaction((tx) =>
          markStale(
            tx,
            runUids.map((runUid) => ({ runUid, changedAt: now })),
            now,
          ),
        );
        while ((await refreshRuns(deps)) === REFRESH_BATCH);
      },
    },
    /** Reads due runs until none is due. For tests; `start` repeats it. */
    async refreshDue(): Promise<void> {
      while ((await refreshRuns(deps)) > 0);
    },
    start: (): void => refresher.start(),
    async stop(): Promise<void> {
      unlisten();
      await refresher.stop();
    },
  };
}

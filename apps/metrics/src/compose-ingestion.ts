import type { Transport } from "@connectrpc/connect";
import { BackgroundLoop, type Database } from "@millwright/database";
import { Consumer } from "@millwright/events";
import { upstreamFeed, type ServiceOptions } from "@millwright/service";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { MARKED, markStale } from "./store/stale-run-store.ts";
import { REFRESH_BATCH, refreshRuns } from "./usecases/refresh-runs.ts";

export type IngestionOptions = Pick<ServiceOptions, "clock" | "log" | "signer" | "tracer" | "wakeups"> & {
  readonly database: Database;
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
  const consumer = new Consumer({
    ...CONSUMER,
    read: upstreamFeed(upstreams.orchestrator, signer),
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
    onError: (error) => log.warn({ error }, "claiming stale runs failed; retrying"),
  });
  const unlisten = database.onCommit((announced) => void (announced.has(MARKED) && refresher.wake()));
  return {
    consumedFeed: { feed: CONSUMER, consumer },
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

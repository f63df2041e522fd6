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
import { MARKED, readFreshness } from "./store/stale-run-store.ts";
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
/** How often due runs are polled without a notification: those that are planned, and those whose claim was lost. */
const POLL_MS = 2_000;
/** Events of one run follow each other closely: those of so much time are answered by one read. */
const REST_MS = 200;

/** How facts of runs come in: events mark runs, the refresher reads them. */
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
    ...(wakeups && { wakeups }),
  });
  const deps = { database, clock, log, orchestrator: orchestratorClient(upstreams.orchestrator, signer), timeScale };
  const refresher = new BackgroundLoop({
    everyMs: POLL_MS / timeScale,
    restMs: REST_MS / timeScale,
    step: async () => ((await refreshRuns(deps)) === REFRESH_BATCH ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "stale runs were not claimed; it is tried again"),
  });
  const unlisten = database.onCommit((announced) => void (announced.has(MARKED) && refresher.wake()));
  let feedReadAt: Date | undefined;
  return {
    consumers: [consumer],
    /** Returns the time up to which answers show what happened to runs. */
    async asOf(): Promise<Date> {
      const now = clock.now();
      const progress = consumer.progress();
      // Between two pages it is not known how old the rest is: the previous time remains valid.
      if (progress && (progress.lagEvents === 0 || progress.lagSeconds > 0)) {
        feedReadAt = new Date(now.getTime() - 1000 * Math.max(progress.lagSeconds, progress.secondsSinceRead));
      }
      const { unshownAt, appliedAt } = await readFreshness(database.sql, CONSUMER, now);
      const appliedTo = feedReadAt ?? appliedAt ?? new Date(0);
      return unshownAt && unshownAt < appliedTo ? unshownAt : appliedTo;
    },
    /** Reads what is due until nothing is. For tests; `start` has it repeated. */
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

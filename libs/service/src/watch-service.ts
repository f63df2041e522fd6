import type { Database } from "@millwright/database";
import { readFeedState, type Consumer } from "@millwright/events";
import type { Metrics } from "@millwright/telemetry";
import type { WorkQueue } from "@millwright/work";

export type Watched = {
  /** The name in metrics. */
  readonly service: string;
  readonly metrics: Metrics;
  readonly database: Database;
  readonly consumers: readonly Consumer[];
  readonly work?: WorkQueue;
};

/**
 * Registers the metrics of every service: its connections, its log, the progress of its consumers, its work. Values
 * from the database are the same on all replicas. Returns a function that unregisters them.
 */
export function watchService({ service, metrics, database, consumers, work }: Watched): () => void {
  const connections = metrics.scrapedGauge(
    "millwright_database_connections",
    "Connections to the service's database; waiting: statements for which none is free and none can be opened.",
    ["service", "state"],
  );
  const head = metrics.scrapedGauge("millwright_events_head", "Events in the service's log, ever.", ["service"]);
  const pending = metrics.scrapedGauge(
    "millwright_events_pending",
    "Committed events that have no place in the log yet (10000: or more).",
    ["service"],
  );
  const oldest = metrics.scrapedGauge(
    "millwright_events_oldest_pending_seconds",
    "Age of the oldest of them: the lag of the sequencer.",
    ["service"],
  );
  const relay = metrics.scrapedGauge(
    "millwright_relay_lag_events",
    "Events in the log that have not been published to NATS.",
    ["service"],
  );
  const deadLettered = metrics.scrapedGauge(
    "millwright_events_dead_lettered",
    "Events that a consumer could not apply, and those that wait behind them.",
    ["service", "reader", "source"],
  );
  const stopped = metrics.scrapedGauge(
    "millwright_feed_stopped",
    "1 if a reader has stopped and an operator must set the position from which it resumes.",
    ["service", "reader", "source"],
  );
  const lag = metrics.scrapedGauge("millwright_feed_lag_events", "Events that a reader has not applied.", [
    "service",
    "reader",
    "source",
  ]);
  const lagSeconds = metrics.scrapedGauge(
    "millwright_feed_lag_seconds",
    "Age of the oldest event that a reader has not applied.",
    ["service", "reader", "source"],
  );
  const sinceRead = metrics.scrapedGauge(
    "millwright_feed_seconds_since_read",
    "Time since a reader last read its source.",
    ["service", "reader", "source"],
  );
  const items = metrics.scrapedGauge("millwright_work_items", "Work that is not done.", ["service", "kind", "state"]);
  const overdue = metrics.scrapedGauge(
    "millwright_work_overdue_seconds",
    "For how long the oldest due work has waited.",
    ["service", "kind"],
  );

  const readers = {
    connections: () => {
      const { totalCount, idleCount, waitingCount, options } = database.pool;
      connections.set({ service, state: "in_use" }, totalCount - idleCount);
      connections.set({ service, state: "idle" }, idleCount);
      // The pool counts each new statement for a moment, those of this scrape included.
      const available = idleCount + options.max - totalCount;
      connections.set({ service, state: "waiting" }, Math.max(0, waitingCount - available));
      connections.set({ service, state: "max" }, options.max);
    },
    feeds: () => {
      for (const progress of consumers.map((each) => each.progress())) {
        if (!progress) continue;
        const { reader, source } = progress;
        lag.set({ service, reader, source }, progress.lagEvents);
        lagSeconds.set({ service, reader, source }, progress.lagSeconds);
        sinceRead.set({ service, reader, source }, progress.secondsSinceRead);
      }
    },
    log: async () => {
      const state = await readFeedState(database.sql);
      head.set({ service }, state.head);
      pending.set({ service }, state.pending);
      oldest.set({ service }, state.oldestPendingSeconds);
      if (state.relayLag !== undefined) relay.set({ service }, state.relayLag);
      for (const { reader, source, events, isStopped } of state.consumers) {
        deadLettered.set({ service, reader, source }, events);
        stopped.set({ service, reader, source }, isStopped ? 1 : 0);
      }
    },
    work: async () => {
      for (const { kind, state, count, overdueSeconds } of (await work?.counts()) ?? []) {
        items.set({ service, kind, state }, count);
        if (state === "waiting") overdue.set({ service, kind }, overdueSeconds);
      }
    },
  };
  const stops = Object.entries(readers).map(([name, read]) => metrics.onScrape(`${service} ${name}`, read));
  return () => stops.forEach((stop) => stop());
}

import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { Metrics } from "@millwright/telemetry";
import { countStaleRuns } from "./store/stale-run-counts.ts";

/** Registers the gauges of changes that no metric contains yet, read from the database at each scrape. */
export function freshnessMetrics(metrics: Metrics, database: Pick<Database, "sql">, clock: Clock): () => void {
  const runs = metrics.scrapedGauge("millwright_stale_runs", "Runs whose changes are not in the metrics yet.", [
    "state",
  ]);
  const oldest = metrics.scrapedGauge("millwright_stale_runs_oldest_seconds", "Age of the oldest such change.", []);
  return metrics.onScrape("metrics freshness", async () => {
    const counts = await countStaleRuns(database.sql, clock.now());
    runs.set({ state: "waiting" }, counts.waiting);
    runs.set({ state: "failing" }, counts.failing);
    oldest.set({}, counts.oldestSeconds);
  });
}

import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { Metrics } from "@millwright/telemetry";
import { countScoring } from "./store/scoring-counts.ts";

/** Registers the gauges of unfinished scoring work, which are read from the database at each scrape. */
export function scoringMetrics(metrics: Metrics, database: Pick<Database, "sql">, clock: Clock): () => void {
  const attempts = metrics.scrapedGauge("millwright_scoring_attempts", "Unfinished scoring attempts.", ["state"]);
  const oldest = metrics.scrapedGauge("millwright_scoring_oldest_seconds", "Age of the oldest of them.", []);
  const runs = metrics.scrapedGauge("millwright_benchmark_runs", "Unfinished benchmark runs.", ["state"]);
  return metrics.onScrape("scoring", async () => {
    const counts = await countScoring(database.sql, clock.now());
    attempts.set({ state: "pending" }, counts.pending);
    attempts.set({ state: "judging" }, counts.judging);
    oldest.set({}, counts.oldestSeconds);
    for (const [state, count] of Object.entries(counts.benchmarkRuns)) runs.set({ state }, count);
  });
}

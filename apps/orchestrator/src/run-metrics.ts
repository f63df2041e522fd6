import type { Database } from "@millwright/database";
import type { Metrics } from "@millwright/telemetry";
import { MODEL_PROVIDERS } from "./catalog/domain/model-providers.ts";
import { explainQueue } from "./leases/domain/queue-reason.ts";
import type { Timings } from "./runs/domain/timings.ts";
import type { TokenCounts } from "./catalog/domain/usage.ts";
import type { ModelCallCount } from "./leases/usecases/heartbeat.ts";
import { finishedState } from "./runs/store/finished-announcement.ts";
import { readLoad } from "./leases/store/load-store.ts";
import { readQueuedLanes } from "./leases/store/queue-status-store.ts";

export type RunMetrics = {
  /** Counts the tokens of a model call that was recorded for the first time, and its cost, if it is known. */
  usage(provider: string, tokens: TokenCounts, costMicros: bigint | undefined): void;
  /** Counts the model calls that a worker made since its previous report. */
  modelCalls(counts: readonly ModelCallCount[]): void;
  stop(): void;
};

const PROVIDERS: ReadonlySet<string> = new Set(MODEL_PROVIDERS.map(({ name }) => name));
/** Outcomes of model calls, as workers report them. */
const OUTCOMES: ReadonlySet<string> = new Set([
  "ok",
  "cut_short",
  "refused",
  "model_unavailable",
  "model_key_refused",
  "model_account",
  "model_not_found",
  "model_refused_request",
  "interrupted",
]);
const PHASES: ReadonlySet<string> = new Set(["SETUP", "RUNNING", "IDLE", "DEBUG", "STOPPING"]);

/** Returns `word` as a label if it is known, else "other", so that labels of external origin stay few. */
const among = (known: ReadonlySet<string>, word: string): string => (known.has(word) ? word : "other");

/**
 * Registers the metrics of runs, queue and models. Gauges are read from the database, so they are the same at all
 * replicas; counters count what this replica processed. The gauges read active runs, leases and workers only, so their
 * cost does not grow with history.
 */
export function runMetrics(metrics: Metrics, database: Database, timings: Pick<Timings, "leaseTtlMs">): RunMetrics {
  const runs = metrics.scrapedGauge("millwright_runs", "Active runs by state.", ["state"]);
  const finished = metrics.counter(
    "millwright_runs_finished_total",
    "Ended runs by state; a continued run counts again when it ends.",
    ["state"],
  );
  const depth = metrics.scrapedGauge(
    "millwright_queue_depth",
    "Queued executions, by the reason why the first one of their lane waits, and runs that wait for children.",
    ["reason"],
  );
  const oldest = metrics.scrapedGauge(
    "millwright_queue_oldest_seconds",
    "Age of the oldest queued execution, by the reason why the first one of its lane waits.",
    ["reason"],
  );
  const leases = metrics.scrapedGauge(
    "millwright_leases",
    "Executions that workers own, by the phase that they last reported; OFFERED: not accepted yet.",
    ["phase"],
  );
  const workers = metrics.scrapedGauge("millwright_workers", "Connected workers.", ["state"]);
  const slots = metrics.scrapedGauge("millwright_worker_slots", "Slots of connected workers.", ["state"]);
  const calls = metrics.counter("millwright_model_calls_total", "Model calls that workers reported.", [
    "provider",
    "outcome",
  ]);
  const tokens = metrics.counter("millwright_model_tokens_total", "Tokens that providers counted.", [
    "provider",
    "kind",
  ]);
  const cost = metrics.counter("millwright_model_cost_dollars_total", "Cost of model calls with a known price.", [
    "provider",
  ]);

  const readers = {
    load: async () => {
      const load = await readLoad(database.sql, timings.leaseTtlMs);
      for (const { state, count } of load.runs) runs.set({ state }, count);
      for (const { isAccepted, phase, count } of load.leases)
        leases.inc({ phase: isAccepted ? among(PHASES, phase) : "OFFERED" }, count);
      for (const { state, count, slots: all, used } of load.workers) {
        workers.set({ state }, count);
        slots.inc({ state: "used" }, used);
        slots.inc({ state: "free" }, state === "READY" ? Math.max(0, all - used) : 0);
      }
      depth.set({ reason: "waiting_for_children" }, load.waits);
    },
    queue: async () => {
      const lanes = await readQueuedLanes(database.sql, timings.leaseTtlMs);
      const oldestOf = new Map<string, number>();
      for (const { queued, oldestSeconds, facts } of lanes) {
        const { reason } = explainQueue(facts);
        depth.inc({ reason }, queued);
        oldestOf.set(reason, Math.max(oldestOf.get(reason) ?? 0, oldestSeconds));
      }
      for (const [reason, seconds] of oldestOf) oldest.set({ reason }, seconds);
    },
  };
  const stops = [
    ...Object.entries(readers).map(([name, read]) => metrics.onScrape(`orchestrator ${name}`, read)),
    database.onCommit((announced) => {
      for (const topic of announced) {
        const state = finishedState(topic);
        if (state) finished.inc({ state });
      }
    }),
  ];
  return {
    usage(provider, counts, costMicros) {
      const label = { provider: among(PROVIDERS, provider) };
      for (const [kind, count] of Object.entries(counts)) if (count) tokens.inc({ ...label, kind }, count);
      if (costMicros) cost.inc(label, Number(costMicros) / 1e6);
    },
    modelCalls(counts) {
      for (const { provider, outcome, count } of counts)
        if (count > 0) calls.inc({ provider: among(PROVIDERS, provider), outcome: among(OUTCOMES, outcome) }, count);
    },
    stop: () => stops.forEach((stop) => stop()),
  };
}

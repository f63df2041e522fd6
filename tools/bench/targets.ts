import type { MemoryUse, Row, Target } from "./results.ts";

const MEMORY_MB = 400;
const CLAIMED_MS = 10;
const PACED_P99_MS = 50;
const DELIVERY_P99_MS = 25;
const DUE_P99_MS = 2_000;
const PAGE_P99_MS = 50;
const RESULTS_P99_MS = 100;
const MONTH_P99_MS = 100;
const YEAR_P99_MS = 500;
const JUDGED_PER_MINUTE = 10_000;
const FACTS_PER_SECOND = 2_000;

/**
 * Compares the measurements with the targets of the standalone platform. Targets of scenarios that were not measured
 * are left out.
 */
export function evaluateTargets(rows: readonly Row[], memory: readonly MemoryUse[]): Target[] {
  const standalone = rows.filter(({ on }) => on === "standalone");
  const find = (what: string, who = "millwright"): Row | undefined =>
    standalone.find((row) => row.what === what && row.who === who);
  const ratio = (what: string, who: string, minimum: number): Target[] =>
    atLeast(`${what}, against ${who}`, find(what, who)?.ours, minimum);
  const pages = (isPage: (what: string) => boolean, limitMs: (what: string) => number): Target[] =>
    standalone.flatMap(({ what, who, latencyMs }) =>
      who === "millwright" && latencyMs && isPage(what)
        ? [target(what, `p99 < ${limitMs(what)} ms`, `${latencyMs.p99} ms`, latencyMs.p99 < limitMs(what))]
        : [],
    );
  const judgedPerSecond = find("finished runs judged by a rule")?.perSecond;
  const idle = memory.filter(({ on }) => on === "standalone");
  const residentMb = idle.reduce((sum, use) => sum + use.residentMb, 0);
  return [
    ...["one at a time", "16 at a time"].flatMap((how) => [
      ...ratio(`create a run, ${how}`, "floor", 0.5),
      ...ratio(`create a run, ${how}`, "floor-with-pg-boss", 1),
      ...ratio(`create a run, ${how}`, "pg-boss", 1),
      ...ratio(`read a run, ${how}`, "floor", 0.5),
    ]),
    ...within("create to claimed, p50", find("create to claimed, idle worker")?.latencyMs?.p50, CLAIMED_MS),
    ...ratio("no-op runs finished", "pg-boss", 1),
    ...ratio("no-op runs finished", "graphile-worker", 0.1),
    ...within(
      "create to claimed at 50 runs/s, p99",
      find("create to claimed, 50 runs/s")?.latencyMs?.p99,
      PACED_P99_MS,
    ),
    ...within(
      "10,000 schedules due in the same second, p99",
      find("10,000 schedules due in the same second, to committed runs")?.latencyMs?.p99,
      DUE_P99_MS,
    ),
    ...["1 KB to webhooks, 16", "1 KB to webhooks, 64", "64 KB to webhooks, 16"].flatMap((load) =>
      ratio(`deliver ${load} at a time`, "floor", 0.5),
    ),
    ...within("delivery at 500/s, p99", find("deliver 1 KB to webhooks, 500/s")?.latencyMs?.p99, DELIVERY_P99_MS),
    ...pages(
      (what) => what.startsWith("a page of 1,000,000 runs"),
      () => PAGE_P99_MS,
    ),
    ...pages(
      (what) => what.endsWith(", 1,000,000 scores"),
      () => RESULTS_P99_MS,
    ),
    ...pages(
      (what) => what.endsWith(", 1,000,000 runs"),
      (what) => (what.includes("365 days") ? YEAR_P99_MS : MONTH_P99_MS),
    ),
    ...atLeast(
      "facts of runs stored, per second",
      rounded(find("facts stored, 1,000,000 runs")?.perSecond),
      FACTS_PER_SECOND,
    ),
    ...atLeast(
      "finished runs judged by a rule, per minute",
      rounded(judgedPerSecond && judgedPerSecond * 60),
      JUDGED_PER_MINUTE,
    ),
    ...(idle.length > 0
      ? [target("idle platform, resident", `< ${MEMORY_MB} MB`, `${residentMb} MB`, residentMb < MEMORY_MB)]
      : []),
  ];
}

const target = (name: string, wanted: string, measured: string, isMet: boolean): Target => ({
  name,
  wanted,
  measured,
  isMet,
});

const atLeast = (name: string, measured: number | undefined, minimum: number): Target[] =>
  measured === undefined ? [] : [target(name, `≥ ${minimum}`, String(measured), measured >= minimum)];

const within = (name: string, ms: number | undefined, limitMs: number): Target[] =>
  ms === undefined ? [] : [target(name, `≤ ${limitMs} ms`, `${ms} ms`, ms <= limitMs)];

const rounded = (rate: number | undefined): number | undefined => rate && Math.round(rate);

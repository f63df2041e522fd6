import { round } from "./samples.ts";
import { SETUPS, type MemoryUse, type Row, type Setup, type Target } from "./results.ts";

/** Limits that differ between the setups. `floor` is the reference implementation of creation and reading. */
const LIMITS = {
  standalone: {
    floor: "floor",
    singleRatio: 0.5,
    concurrentRatio: 0.8,
    deliveryRatio: 0.6,
    dueP99Ms: 1_000,
    memoryMb: 400,
  },
  processes: {
    floor: "two-process floor",
    singleRatio: 0.6,
    concurrentRatio: 0.6,
    deliveryRatio: 0.4,
    dueP99Ms: 2_000,
    memoryMb: 700,
  },
} as const;
const GRAPHILE_RATIO = 0.5;
const PG_BOSS_WORKERS_RATIO = 5;
const PACED_P99_MS = 50;
const PACED_P50_MS = 8;
const CLAIMED_MS = 10;
const START_MS = 2_000;
const LARGE_DELIVERY_RATIO = 0.5;
const DELIVERY_P99_MS = 25;
const PAGE_P99_MS = 50;
/** p99 of a page at the largest number of runs, divided by that at the number of runs with which it is compared. */
const PAGE_GROWTH = 2;
const PAGE_OF_RUNS = /^a page of ([\d,]+) runs by /;
const FEW_RUNS = "100,000";
const RESULTS_P99_MS = 100;
const MONTH_P99_MS = 100;
const YEAR_P99_MS = 500;
const JUDGED_PER_MINUTE = 10_000;
const FACTS_PER_SECOND = 2_000;

/** Compares the measurements with the targets. Targets of scenarios that were not measured are left out. */
export const evaluateTargets = (rows: readonly Row[], memory: readonly MemoryUse[]): Target[] =>
  SETUPS.flatMap((on) => {
    const own = rows.filter((row) => row.on === on);
    const idle = memory.filter((use) => use.on === on);
    return [...bothSetups(on, own, idle), ...(on === "standalone" ? standaloneOnly(own) : processesOnly(own))].map(
      (found) => ({ on, ...found }),
    );
  });

type Found = Omit<Target, "on">;

function bothSetups(on: Setup, rows: readonly Row[], idle: readonly MemoryUse[]): Found[] {
  const limits = LIMITS[on];
  const ownMb = idle.reduce((sum, use) => sum + use.ownMb, 0);
  return [
    ...["create a run", "read a run"].flatMap((what) => [
      ...ratio(rows, `${what}, one at a time`, limits.floor, limits.singleRatio),
      ...ratio(rows, `${what}, 16 at a time`, limits.floor, limits.concurrentRatio),
    ]),
    ...within(
      "create to claimed at 50 runs/s, p99",
      find(rows, "create to claimed, 50 runs/s")?.latencyMs?.p99,
      PACED_P99_MS,
    ),
    ...ratio(rows, "no-op runs finished", "graphile-worker", GRAPHILE_RATIO),
    ...ratio(rows, "no-op runs finished", "pg-boss", PG_BOSS_WORKERS_RATIO),
    ...below(
      "10,000 schedules due in the same second, p99",
      find(rows, "10,000 schedules due in the same second, to committed runs")?.latencyMs?.p99,
      limits.dueP99Ms,
    ),
    ...[16, 64].flatMap((atOnce) =>
      ratio(rows, `deliver 1 KB to webhooks, ${atOnce} at a time`, "floor", limits.deliveryRatio),
    ),
    ...(idle.length > 0
      ? [target("idle platform, memory", `< ${limits.memoryMb} MB`, `${ownMb} MB`, ownMb < limits.memoryMb)]
      : []),
  ];
}

const processesOnly = (rows: readonly Row[]): Found[] =>
  within(
    "create to claimed at 50 runs/s, p50",
    find(rows, "create to claimed, 50 runs/s")?.latencyMs?.p50,
    PACED_P50_MS,
  );

function standaloneOnly(rows: readonly Row[]): Found[] {
  const pages = (isPage: (what: string) => boolean, limitMs: (what: string) => number): Found[] =>
    rows.flatMap(({ what, who, latencyMs }) =>
      who === "millwright" && latencyMs && isPage(what) ? below(`${what}, p99`, latencyMs.p99, limitMs(what)) : [],
    );
  const judgedPerSecond = find(rows, "finished runs judged by a rule")?.perSecond;
  return [
    ...["one at a time", "16 at a time"].flatMap((how) =>
      ["floor-with-pg-boss", "pg-boss"].flatMap((peer) => ratio(rows, `create a run, ${how}`, peer, 1)),
    ),
    ...within("create to claimed, p50", find(rows, "create to claimed, idle worker")?.latencyMs?.p50, CLAIMED_MS),
    ...ratio(rows, "deliver 64 KB to webhooks, 16 at a time", "floor", LARGE_DELIVERY_RATIO),
    ...within("delivery at 500/s, p99", find(rows, "deliver 1 KB to webhooks, 500/s")?.latencyMs?.p99, DELIVERY_P99_MS),
    ...pagesOfRuns(rows),
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
      rounded(find(rows, "facts stored, 1,000,000 runs")?.perSecond),
      FACTS_PER_SECOND,
    ),
    ...atLeast(
      "finished runs judged by a rule, per minute",
      rounded(judgedPerSecond && judgedPerSecond * 60),
      JUDGED_PER_MINUTE,
    ),
    ...below("npm start, warm, to ready, p50", find(rows, "npm start, warm, to ready")?.latencyMs?.p50, START_MS),
  ];
}

/** Returns the targets of the pages among the largest number of runs. */
function pagesOfRuns(rows: readonly Row[]): Found[] {
  const pages = rows.flatMap((row) => {
    const count = PAGE_OF_RUNS.exec(row.what)?.[1];
    return count && row.latencyMs ? [{ what: row.what, count, p99: row.latencyMs.p99 }] : [];
  });
  const largest = pages.at(-1)?.count;
  return pages
    .filter(({ count }) => count === largest)
    .flatMap(({ what, count, p99 }) => {
      const few = pages.find((page) => page.what === what.replace(count, FEW_RUNS));
      const growth = few && round(p99 / few.p99);
      return [
        ...below(`${what}, p99`, p99, PAGE_P99_MS),
        ...(growth === undefined || count === FEW_RUNS
          ? []
          : [
              target(
                `${what}, p99, against ${FEW_RUNS} runs`,
                `≤ ${PAGE_GROWTH}`,
                String(growth),
                growth <= PAGE_GROWTH,
              ),
            ]),
      ];
    });
}

const find = (rows: readonly Row[], what: string, who = "millwright"): Row | undefined =>
  rows.find((row) => row.what === what && row.who === who);

const ratio = (rows: readonly Row[], what: string, who: string, minimum: number): Found[] =>
  atLeast(`${what}, against ${who}`, find(rows, what, who)?.ours, minimum);

const target = (name: string, wanted: string, measured: string, isMet: boolean): Found => ({
  name,
  wanted,
  measured,
  isMet,
});

const atLeast = (name: string, measured: number | undefined, minimum: number): Found[] =>
  measured === undefined ? [] : [target(name, `≥ ${minimum}`, String(measured), measured >= minimum)];

const within = (name: string, ms: number | undefined, limitMs: number): Found[] =>
  ms === undefined ? [] : [target(name, `≤ ${limitMs} ms`, `${ms} ms`, ms <= limitMs)];

const below = (name: string, ms: number | undefined, limitMs: number): Found[] =>
  ms === undefined ? [] : [target(name, `< ${limitMs} ms`, `${ms} ms`, ms < limitMs)];

const rounded = (rate: number | undefined): number | undefined => rate && Math.round(rate);

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
export function judge(rows: readonly Row[], memory: readonly MemoryUse[]): Target[] {
  const find = (what: string, who: string): Row | undefined =>
    rows.find((row) => row.on === "standalone" && row.what === what && row.who === who);
  const ratio = (what: string, who: string, atLeast: number): Target[] => {
    const ours = find(what, who)?.ours;
    return ours === undefined
      ? []
      : [{ name: `${what}, against ${who}`, wanted: `≥ ${atLeast}`, measured: String(ours), isMet: ours >= atLeast }];
  };
  const claimed = find("create to claimed, idle worker", "millwright")?.latencyMs;
  const paced = find("create to claimed, 50 runs/s", "millwright")?.latencyMs;
  const delivered = find("deliver 1 KB to webhooks, 500/s", "millwright")?.latencyMs;
  const due = find("10,000 schedules due in the same second, to committed runs", "millwright")?.latencyMs;
  const judged = find("finished runs judged by a rule", "millwright")?.perSecond;
  const stored = find("facts stored, 1,000,000 runs", "millwright")?.perSecond;
  const idle = memory.filter(({ on }) => on === "standalone");
  const residentMb = idle.reduce((sum, one) => sum + one.residentMb, 0);
  return [
    ...["one at a time", "16 at a time"].flatMap((how) => [
      ...ratio(`create a run, ${how}`, "floor", 0.5),
      ...ratio(`create a run, ${how}`, "floor-with-pg-boss", 1),
      ...ratio(`create a run, ${how}`, "pg-boss", 1),
      ...ratio(`read a run, ${how}`, "floor", 0.5),
    ]),
    ...(claimed
      ? [
          {
            name: "create to claimed, p50",
            wanted: `≤ ${CLAIMED_MS} ms`,
            measured: `${claimed.p50} ms`,
            isMet: claimed.p50 <= CLAIMED_MS,
          },
        ]
      : []),
    ...ratio("no-op runs finished", "pg-boss", 1),
    ...ratio("no-op runs finished", "graphile-worker", 0.1),
    ...(paced
      ? [
          {
            name: "create to claimed at 50 runs/s, p99",
            wanted: `≤ ${PACED_P99_MS} ms`,
            measured: `${paced.p99} ms`,
            isMet: paced.p99 <= PACED_P99_MS,
          },
        ]
      : []),
    ...(due
      ? [
          {
            name: "10,000 schedules due in the same second, p99",
            wanted: `≤ ${DUE_P99_MS} ms`,
            measured: `${due.p99} ms`,
            isMet: due.p99 <= DUE_P99_MS,
          },
        ]
      : []),
    ...["1 KB to webhooks, 16", "1 KB to webhooks, 64", "64 KB to webhooks, 16"].flatMap((load) =>
      ratio(`deliver ${load} at a time`, "floor", 0.5),
    ),
    ...(delivered
      ? [
          {
            name: "delivery at 500/s, p99",
            wanted: `≤ ${DELIVERY_P99_MS} ms`,
            measured: `${delivered.p99} ms`,
            isMet: delivered.p99 <= DELIVERY_P99_MS,
          },
        ]
      : []),
    ...rows.flatMap(({ on, what, latencyMs }) =>
      on === "standalone" && what.startsWith("a page of 1,000,000 runs") && latencyMs
        ? [
            {
              name: what,
              wanted: `p99 < ${PAGE_P99_MS} ms`,
              measured: `${latencyMs.p99} ms`,
              isMet: latencyMs.p99 < PAGE_P99_MS,
            },
          ]
        : [],
    ),
    ...rows.flatMap(({ on, what, latencyMs }) =>
      on === "standalone" && what.endsWith(", 1,000,000 scores") && latencyMs
        ? [
            {
              name: what,
              wanted: `p99 < ${RESULTS_P99_MS} ms`,
              measured: `${latencyMs.p99} ms`,
              isMet: latencyMs.p99 < RESULTS_P99_MS,
            },
          ]
        : [],
    ),
    ...rows.flatMap(({ on, who, what, latencyMs }) => {
      if (on !== "standalone" || who !== "millwright" || !what.endsWith(", 1,000,000 runs") || !latencyMs) return [];
      const limitMs = what.includes("365 days") ? YEAR_P99_MS : MONTH_P99_MS;
      return [
        { name: what, wanted: `p99 < ${limitMs} ms`, measured: `${latencyMs.p99} ms`, isMet: latencyMs.p99 < limitMs },
      ];
    }),
    ...(stored
      ? [
          {
            name: "facts of runs stored, per second",
            wanted: `≥ ${FACTS_PER_SECOND}`,
            measured: String(Math.round(stored)),
            isMet: stored >= FACTS_PER_SECOND,
          },
        ]
      : []),
    ...(judged
      ? [
          {
            name: "finished runs judged by a rule, per minute",
            wanted: `≥ ${JUDGED_PER_MINUTE}`,
            measured: String(Math.round(judged * 60)),
            isMet: judged * 60 >= JUDGED_PER_MINUTE,
          },
        ]
      : []),
    ...(idle.length > 0
      ? [
          {
            name: "idle platform, resident",
            wanted: `< ${MEMORY_MB} MB`,
            measured: `${residentMb} MB`,
            isMet: residentMb < MEMORY_MB,
          },
        ]
      : []),
  ];
}

import { drill } from "@millwright/test-platform";
import { printRows, printLine } from "./table.ts";

const SLOW_MS = 30_000;
const STALL_TIMEOUT_MS = 180_000;
const REPORT_EVERY = 50;

/** Executes schedules and prints the results. Returns whether every guarantee was met. */
export async function drillSchedules({
  seed,
  count,
  width,
}: {
  seed: number;
  count: number;
  width: number;
}): Promise<boolean> {
  const began = Date.now();
  const secondsSoFar = (): number => Math.round((Date.now() - began) / 1_000);
  let done = 0;
  const { results, violations } = await drill({
    seeds: Array.from({ length: count }, (_, n) => seed + n),
    width,
    stallTimeoutMs: STALL_TIMEOUT_MS,
    onResult: ({ seed: of, violations: found, tookMs, givenUp }) => {
      done += 1;
      if (tookMs > SLOW_MS) printLine(`slow    seed ${of}: ${Math.round(tookMs / 1_000)} s`);
      for (const reason of givenUp) printLine(`given up in seed ${of}: ${reason}`);
      for (const violation of found) printLine(`VIOLATED  seed ${of}: ${violation}`);
      if (done % REPORT_EVERY === 0) printLine(`${done} of ${count} schedules, ${secondsSoFar()} s`);
    },
  });
  const sum = (of: (schedule: (typeof results)[number]) => number): number =>
    results.reduce((total, schedule) => total + of(schedule), 0);
  const states = [
    ...Map.groupBy(
      results.flatMap((schedule) => schedule.states),
      (state) => state,
    ),
  ].toSorted(([a], [b]) => a.localeCompare(b));
  const times = results.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  const shares = [0.5, 0.99, 1].map(
    (share) => `${((times[Math.ceil(times.length * share) - 1] ?? 0) / 1_000).toFixed(1)} s`,
  );
  printRows([
    ["schedules", results.length],
    ["seconds", secondsSoFar()],
    ["faults inflicted", sum(({ faults }) => faults)],
    ["runs", sum((schedule) => schedule.states.length)],
    ...states.map(([state, runs]): [string, number] => [`  ${state}`, runs.length]),
    ["attempts lost with their workers", sum(({ losses }) => losses)],
    ["runs ended by the limits of retries", sum(({ givenUp }) => givenUp.length)],
    ["follow-ups, each with one outcome", sum(({ followUps }) => followUps)],
    ["schedule until everything ended, median / 99 % / longest", shares.join(" / ")],
    ["guarantees violated", violations.length],
  ]);
  for (const violation of violations) printLine(`VIOLATED  ${violation}`);
  if (violations.length > 0) printLine("Repeat a schedule with: npm run drill -- --seed N");
  return violations.length === 0;
}

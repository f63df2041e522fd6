import { drill } from "@millwright/test-platform";
import { printRows, say } from "./table.ts";

const SLOW_MS = 30_000;
const STALL_TIMEOUT_MS = 180_000;
const TELL_EVERY = 50;

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
  const { played, violations } = await drill({
    seeds: Array.from({ length: count }, (_, n) => seed + n),
    width,
    stallTimeoutMs: STALL_TIMEOUT_MS,
    onPlayed: ({ seed: of, violations: found, tookMs, givenUp }) => {
      done += 1;
      if (tookMs > SLOW_MS) say(`slow    seed ${of}: ${Math.round(tookMs / 1_000)} s`);
      for (const reason of givenUp) say(`given up in seed ${of}: ${reason}`);
      for (const violation of found) say(`VIOLATED  seed ${of}: ${violation}`);
      if (done % TELL_EVERY === 0) say(`${done} of ${count} schedules, ${secondsSoFar()} s`);
    },
  });
  const sum = (of: (one: (typeof played)[number]) => number): number =>
    played.reduce((total, one) => total + of(one), 0);
  const states = [
    ...Map.groupBy(
      played.flatMap((one) => one.states),
      (state) => state,
    ),
  ].toSorted(([a], [b]) => a.localeCompare(b));
  const times = played.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  const shares = [0.5, 0.99, 1].map(
    (share) => `${((times[Math.ceil(times.length * share) - 1] ?? 0) / 1_000).toFixed(1)} s`,
  );
  printRows([
    ["schedules", played.length],
    ["seconds", secondsSoFar()],
    ["faults inflicted", sum(({ faults }) => faults)],
    ["runs", sum((one) => one.states.length)],
    ...states.map(([state, all]): [string, number] => [`  ${state}`, all.length]),
    ["workers lost while they held a run", sum(({ losses }) => losses)],
    ["runs given up, as the limits say", sum(({ givenUp }) => givenUp.length)],
    ["follow-ups, each with one fate", sum(({ followUps }) => followUps)],
    ["schedule until everything ended, median / 99 % / longest", shares.join(" / ")],
    ["guarantees violated", violations.length],
  ]);
  for (const violation of violations) say(`VIOLATED  ${violation}`);
  if (violations.length > 0) say("A schedule is played again by: npm run drill -- --seed N");
  return violations.length === 0;
}

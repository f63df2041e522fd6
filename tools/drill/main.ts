// npm run drill: plays seeded schedules of faults on a platform of real processes, and says what broke a promise.
//
//   npm run drill -- [--seed N] [--count 1000] [--at-once 6]
//
// With a seed and no count, that one schedule. Exit code 1 when anything was broken.
import { parseArgs } from "node:util";
import { drill } from "../../apps/system-tests/src/index.ts";

const { values } = parseArgs({ options: { seed: { type: "string" }, count: { type: "string" }, "at-once": { type: "string", default: "6" } } });
const count = Number(values.count ?? (values.seed === undefined ? 1_000 : 1));
const SLOW_MS = 30_000;
const began = Date.now();
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let done = 0;

const { played, breaches } = await drill({
  seed: Number(values.seed ?? 1), count, width: Number(values["at-once"]), patienceMs: 180_000,
  onPlayed: ({ seed, breaches: found, tookMs }) => {
    done += 1;
    if (tookMs > SLOW_MS) say(`slow    seed ${seed}: ${Math.round(tookMs / 1_000)} s`);
    for (const breach of found) say(`BROKEN  seed ${seed}: ${breach}`);
    if (done % 50 === 0) say(`${done} of ${count} schedules, ${Math.round((Date.now() - began) / 1_000)} s`);
  },
});

const sum = (of: (one: (typeof played)[number]) => number): number => played.reduce((total, one) => total + of(one), 0);
const states = Map.groupBy(played.flatMap((one) => one.states), (state) => state);
const times = played.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
const rows: [string, string | number][] = [
  ["schedules", played.length],
  ["seconds", Math.round((Date.now() - began) / 1_000)],
  ["faults inflicted", sum(({ faults }) => faults)],
  ["runs", sum((one) => one.states.length)],
  ...[...states].toSorted(([a], [b]) => a.localeCompare(b)).map(([state, all]): [string, number] => [`  ${state}`, all.length]),
  ["workers lost while they held a run", sum(({ losses }) => losses)],
  ["runs given up, as the limits say", sum(({ givenUp }) => givenUp)],
  ["follow-ups, each with one fate", sum(({ followUps }) => followUps)],
  ["schedule until everything ended, median / 99 % / longest", [0.5, 0.99, 1].map((share) => `${((times[Math.ceil(times.length * share) - 1] ?? 0) / 1_000).toFixed(1)} s`).join(" / ")],
  ["promises broken", breaches.length],
];
for (const [name, value] of rows) say(`${name.padEnd(58)} ${value}`);
for (const breach of breaches) say(`BROKEN  ${breach}`);
if (breaches.length > 0) say("A schedule is played again by: npm run drill -- --seed N");
process.exit(breaches.length > 0 ? 1 : 0);

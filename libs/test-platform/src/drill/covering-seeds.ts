import { faultType, scheduleOf } from "./schedule.ts";

/**
 * Returns few seeds up to `last` whose schedules inflict every type of fault on every kind of run that occurs in any
 * schedule up to `last`. Greedy: each seed adds the most pairs that are still missing.
 */
export function coveringSeeds(last: number): number[] {
  const pairsBySeed = new Map(Array.from({ length: last }, (_, n) => [n + 1, pairsOf(n + 1)]));
  const missing = new Set([...pairsBySeed.values()].flatMap((pairs) => [...pairs]));
  const seeds: number[] = [];
  while (missing.size > 0) {
    const gains = [...pairsBySeed].map(([seed, pairs]) => ({
      seed,
      gain: [...pairs].filter((pair) => missing.has(pair)).length,
    }));
    const best = gains.reduce((most, candidate) => (candidate.gain > most.gain ? candidate : most));
    seeds.push(best.seed);
    for (const pair of pairsBySeed.get(best.seed)!) missing.delete(pair);
  }
  return seeds;
}

/** Returns each type of fault of a schedule paired with each kind of its runs. */
export function pairsOf(seed: number): Set<string> {
  const { runs, faults } = scheduleOf(seed);
  return new Set(faults.flatMap((fault) => runs.map(({ kind }) => `${kind}: ${faultType(fault)}`)));
}

import type { SeededRandom } from "@millwright/testing";
import { CostFacts, type Component, type RunRow } from "./cost-rows.ts";
import type { World } from "./setup.ts";

export const HISTORY_DAYS = 70;
const FIRST_MS = Date.parse("2026-09-11T00:00:00.000Z");
const DAY_MS = 86_400_000;

/** Any time of the history; often the first or the last moment of a day. */
export function someTime({ below, pick }: SeededRandom): Date {
  const day = FIRST_MS + below(HISTORY_DAYS) * DAY_MS;
  return new Date(pick([day, day - 1, day + below(DAY_MS), day + below(DAY_MS)]));
}

const COMPONENTS: Readonly<Record<string, Component>> = {
  model_call: "inference",
  compute_interval: "compute",
  platform_charge: "platform",
};

/** Adds random trees of runs with their spend and pull requests to a new factory. */
export async function randomHistory(world: World, random: SeededRandom): Promise<CostFacts> {
  const { below, pick } = random;
  const facts = new CostFacts(world);
  const lines = Array.from({ length: 25 }, () => pick([0, 1, 50, 99, 100, 499, 500, 999, 1000, 5_000, null]));
  const roots: RunRow[] = [];
  const aRun = (parent?: RunRow): RunRow =>
    facts.run(
      {
        created_at: someTime(random).toISOString(),
        source: pick(["API", "SCHEDULED", "WEBHOOK", ""]),
        agent_uid: pick(["a", "b", "c", ""]),
        model_id: pick(["large", "small", "tiny", ""]),
        ...(!parent && { creator_uid: pick(["ann", "bob", "cid", ""]) }),
      },
      parent,
    );
  for (let tree = 0; tree < 30; tree++) {
    const runs = [aRun()];
    roots.push(runs[0]!);
    for (let more = below(4); more > 0; more--) runs.push(aRun(pick(runs)));
    for (let entries = below(8); entries > 0; entries--) {
      const kind = pick(["model_call", "compute_interval", "platform_charge", "adjustment"]);
      const component = COMPONENTS[kind] ?? pick(["inference", "compute"]);
      const micros = kind === "adjustment" ? below(2_000) - 1_000 : pick([null, 0, 1, below(10), below(1_000_000_000)]);
      // Inference of a shared conversation belongs to the earliest run of it, in whichever tree that is.
      const owner = component === "inference" ? pick([...runs, pick(roots)]) : pick(runs);
      facts.spend(owner, component, micros, { at: someTime(random).toISOString(), kind, usedBy: pick(runs) });
    }
    for (let produced = pick([0, 1, 1, 2, 3]); produced > 0; produced--) {
      const number = below(lines.length);
      const changed = lines[number]!;
      const measured = changed !== null && { additions: Math.floor(changed / 2), deletions: Math.ceil(changed / 2) };
      const producer = pick(runs);
      if (!facts.hasProduced(producer, number))
        facts.produce(producer, number, { at: someTime(random).toISOString(), ...measured });
    }
  }
  await facts.store();
  return facts;
}

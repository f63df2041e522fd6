import { setTimeout as pause } from "node:timers/promises";
import { contradictions } from "./facts.ts";
import { faultsIn } from "./faults-in-logs.ts";
import { play, type Played } from "./play.ts";
import { Rig } from "./rig.ts";
import { scheduleOf, told } from "./schedule.ts";

const SAMPLE_MS = 1_000;

export type DrillOptions = {
  /** Of the schedules, in the order in which they begin. */
  readonly seeds: readonly number[];
  /** Schedules at once. */
  readonly width: number;
  /** How long a run may stand still, and a request go unanswered. */
  readonly patienceMs: number;
  readonly onPlayed?: (played: Played) => void;
};

export type Report = {
  readonly played: readonly Played[];
  /** Everything that must not be, with the seed of its schedule. */
  readonly breaches: readonly string[];
};

/** Plays schedules on one platform that lives through all of them. */
export async function drill({ seeds, width, patienceMs, onPlayed }: DrillOptions): Promise<Report> {
  const rig = await Rig.start({ patienceMs });
  const played: Played[] = [];
  const breaches: string[] = [];
  const sampler = new AbortController();
  const sampling = sample(rig, breaches, sampler.signal);
  const waiting = seeds.values();
  const player = async (): Promise<void> => {
    for (const seed of waiting) {
      const schedule = scheduleOf(seed);
      const done = await play(rig, schedule, patienceMs).catch((error: unknown) => failed(schedule.seed, error));
      played.push(done);
      const faults = schedule.faults.map(told).join("; ");
      breaches.push(...done.breaches.map((breach) => `seed ${schedule.seed} (${faults}): ${breach}`));
      onPlayed?.(done);
    }
  };
  try {
    await Promise.all(Array.from({ length: width }, player));
    sampler.abort();
    await sampling;
    breaches.push(...rig.deaths, ...faultsIn(rig.cluster.errors()));
    return { played, breaches };
  } finally {
    sampler.abort();
    await rig.close();
  }
}

const failed = (seed: number, error: unknown): Played => ({
  seed,
  breaches: [
    `the schedule could not be played: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  ],
  tookMs: 0,
  faults: 0,
  states: [],
  losses: 0,
  givenUp: [],
  followUps: 0,
});

/** Looks in between: at no moment do rows contradict each other, and what is queued says why. */
async function sample(rig: Rig, breaches: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(SAMPLE_MS, undefined, { signal }).catch(() => {});
    for (const breach of await contradictions(rig.database.sql)) if (!breaches.includes(breach)) breaches.push(breach);
    const { rows } = await rig.database.sql.query<{ uid: string }>(
      "SELECT uid FROM runs WHERE state = 'QUEUED' ORDER BY random() LIMIT 1",
    );
    for (const { uid } of rows) {
      const { body } = await rig.client.ask("GET", `/agent/runs/${uid}/queue`);
      if (body.state === "QUEUED" && !body.message)
        breaches.push(`run ${uid} is queued for no reason: ${JSON.stringify(body)}`);
    }
  }
}

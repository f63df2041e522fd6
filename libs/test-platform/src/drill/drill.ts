import { setTimeout as pause } from "node:timers/promises";
import { contradictions } from "./facts.ts";
import { faultsIn } from "./faults-in-logs.ts";
import { metricsViolations } from "./metrics-violations.ts";
import { runSchedule, type ScheduleResult } from "./run-schedule.ts";
import { Rig } from "./rig.ts";
import { scheduleOf, describeFault } from "./schedule.ts";

const SAMPLE_MS = 1_000;

export type DrillOptions = {
  /** Seeds of the schedules, in the order in which they are started. */
  readonly seeds: readonly number[];
  /** Number of schedules that run concurrently. */
  readonly width: number;
  /** Longest time in which a run may make no progress or a request may get no response, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly onResult?: (result: ScheduleResult) => void;
};

export type Report = {
  readonly results: readonly ScheduleResult[];
  /** All violated invariants, each with the seed of its schedule. */
  readonly violations: readonly string[];
};

/** Runs schedules on one platform. */
export async function drill({ seeds, width, stallTimeoutMs, onResult }: DrillOptions): Promise<Report> {
  const rig = await Rig.start({ stallTimeoutMs });
  const results: ScheduleResult[] = [];
  const violations: string[] = [];
  const sampler = new AbortController();
  const sampling = sample(rig, violations, sampler.signal);
  const waiting = seeds.values();
  const runNext = async (): Promise<void> => {
    for (const seed of waiting) {
      const schedule = scheduleOf(seed);
      const result = await runSchedule(rig, schedule, stallTimeoutMs).catch((error: unknown) =>
        failed(schedule.seed, error),
      );
      results.push(result);
      const faults = schedule.faults.map(describeFault).join("; ");
      violations.push(...result.violations.map((violation) => `seed ${schedule.seed} (${faults}): ${violation}`));
      onResult?.(result);
    }
  };
  try {
    await Promise.all(Array.from({ length: width }, runNext));
    sampler.abort();
    await sampling;
    violations.push(...(await metricsViolations(rig.database.sql, rig.metrics.sql, stallTimeoutMs)));
    violations.push(...rig.unexpectedExits, ...faultsIn(rig.cluster.errors()));
    return { results, violations };
  } finally {
    sampler.abort();
    await rig.close();
  }
}

const failed = (seed: number, error: unknown): ScheduleResult => ({
  seed,
  violations: [
    `the schedule could not be run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  ],
  tookMs: 0,
  faults: 0,
  states: [],
  losses: 0,
  givenUp: [],
  followUps: 0,
});

/**
 * Checks once per `SAMPLE_MS` that rows do not contradict each other and that a queued run has a reason for being
 * queued.
 */
async function sample(rig: Rig, violations: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(SAMPLE_MS, undefined, { signal }).catch(() => {});
    for (const violation of await contradictions(rig.database.sql))
      if (!violations.includes(violation)) violations.push(violation);
    const { rows } = await rig.database.sql.query<{ uid: string }>(
      "SELECT uid FROM runs WHERE state = 'QUEUED' ORDER BY random() LIMIT 1",
    );
    for (const { uid } of rows) {
      const { body } = await rig.client.send("GET", `/agent/runs/${uid}/queue`);
      if (body.state === "QUEUED" && !body.message)
        violations.push(`run ${uid} is queued for no reason: ${JSON.stringify(body)}`);
    }
  }
}

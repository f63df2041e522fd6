import { newUid } from "@millwright/ids";
import { manifestHash, type Manifest } from "../src/domain/manifest.ts";
import { BASE, CANDIDATE, CORRECTNESS, MANIFEST, SAMPLES, STYLE, TASKS } from "./benchmark-samples.ts";
import { NOW, OWNER, TEAM, type World } from "./setup.ts";

export type SampleRun = {
  readonly factoryUid: string;
  readonly suiteUid?: string;
  readonly state?: string;
  readonly manifest?: Manifest;
  /** Letters of `SAMPLES` by configuration; tasks are separated by spaces. */
  readonly samples?: Readonly<Record<string, string>>;
};

export type StoredRun = { readonly factoryUid: string; readonly suiteUid: string; readonly runUid: string };

/** Inserts the scorers of the sample manifest. */
export async function insertScorers({ rows }: World, factoryUid: string): Promise<void> {
  for (const [uid, kind, name] of [
    [CORRECTNESS, "benchmark_task_correctness", "Correctness"],
    [STYLE, "user", "Style"],
  ])
    await rows(
      `INSERT INTO scorers (uid, factory_uid, team_uid, name, kind, scope_mode, labels, threshold, scoring_prompt, model_id, creator_type, creator_uid, created_at, updated_at)
       VALUES ($1, $2, $3, $4, $5, 'all_agents', '[]', 0.5, '', 'rule', 'user', $6, $7, $7)`,
      [uid, factoryUid, TEAM, name, kind, OWNER.principal.uid, NOW],
    );
}

/** Inserts a benchmark run of the sample manifest with its trials, ordered by task, configuration and repetition. */
export async function insertRun(
  world: World,
  { factoryUid, suiteUid = newUid(), state = "completed", manifest = MANIFEST, samples = {} }: SampleRun,
): Promise<StoredRun> {
  const runUid = newUid();
  await world.rows(
    `INSERT INTO benchmark_runs (uid, suite_uid, suite_name, suite_version, factory_uid, team_uid, state, manifest, manifest_hash, repetition_count, agent_uid, agent_name,
                                 parallelism, creator_type, creator_uid, created_at, updated_at, started_at, completed_at)
     VALUES ($1, $2, 'Nightly', 4, $3, $4, $5, $6::jsonb, $7, 3, $8, 'coder', 4, 'user', $9, $10, $10, $10, $10)`,
    [
      runUid,
      suiteUid,
      factoryUid,
      TEAM,
      state,
      JSON.stringify(manifest),
      manifestHash(manifest.content),
      newUid(),
      OWNER.principal.uid,
      NOW,
    ],
  );
  const byConfiguration = Object.entries(samples).map(([configurationUid, text]) => ({
    configurationUid,
    tasks: text.split(" "),
  }));
  const trials = manifest.identifiers.tasks.flatMap(({ uid: taskUid }, n) =>
    byConfiguration.flatMap(({ configurationUid, tasks }) =>
      (tasks[n] ?? "").split("").map((letter, repIndex) => ({ taskUid, configurationUid, repIndex, letter })),
    ),
  );
  for (const [position, trial] of trials.entries()) await insertTrial(world, runUid, position, trial);
  return { factoryUid, suiteUid, runUid };
}

type SampleTrial = {
  readonly taskUid: string;
  readonly configurationUid: string;
  readonly repIndex: number;
  readonly letter: string;
};

/** Inserts a trial. A trial with an infrastructure failure has three attempts; every other dispatched trial has one. */
async function insertTrial(
  { rows }: World,
  benchmarkRunUid: string,
  position: number,
  { taskUid, configurationUid, repIndex, letter }: SampleTrial,
): Promise<void> {
  const { state, score, outcome, isInfra = false, isDispatched = true } = SAMPLES[letter]!;
  const uid = newUid();
  const runUids = isDispatched ? Array.from({ length: isInfra ? 3 : 1 }, () => newUid()) : [];
  const isEnded = state !== "pending" && state !== "running";
  await rows(
    `INSERT INTO trials (uid, benchmark_run_uid, position, configuration_uid, task_uid, rep_index, state, terminal_reason, is_infra_failure, run_uid, attempt_count,
                         cost_micros, total_tokens, wall_time_ms, created_at, started_at, completed_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    [
      uid,
      benchmarkRunUid,
      position,
      configurationUid,
      taskUid,
      repIndex,
      state,
      state === "failed" ? "failure" : null,
      isInfra,
      runUids.at(-1) ?? null,
      runUids.length,
      isEnded && isDispatched ? 10_000 : 0,
      isEnded && isDispatched ? 100 : 0,
      isEnded && isDispatched ? 2_000 : 0,
      NOW,
      runUids.length > 0 ? NOW : null,
      isEnded ? NOW : null,
    ],
  );
  for (const [n, runUid] of runUids.entries())
    await rows(
      "INSERT INTO trial_attempts (trial_uid, attempt_number, run_uid, state, started_at) VALUES ($1, $2, $3, $4, $5)",
      [uid, n + 1, runUid, isInfra ? "failed" : state, NOW],
    );
  for (const [scorerUid, value] of [
    [CORRECTNESS, Number(outcome)],
    [STYLE, 0.8],
  ] as const)
    await rows(
      "INSERT INTO trial_scores (trial_uid, scorer_uid, state, classification, score, judge_run_uid, cost_micros) VALUES ($1, $2, $3, $4, $5, $6, $7)",
      [
        uid,
        scorerUid,
        score,
        ...(score === "scored" ? [value >= 0.5 ? "good" : "bad", value, newUid(), 1_000] : [null, null, null, 0]),
      ],
    );
}

export { BASE, CANDIDATE, CORRECTNESS, STYLE, TASKS };

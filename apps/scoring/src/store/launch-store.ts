import type { Database, Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import { enqueueWork } from "@millwright/work";
import type { AdvanceBenchmark, BenchmarkRun } from "../domain/benchmark-run.ts";
import type { LaunchedBenchmark, PlannedTrial } from "../domain/launch.ts";
import { responses } from "./idempotency.ts";

/** Creates benchmark runs. */
/** Rolls the launch back. */
class ScorerDeleted extends Error {}

export function launchStore(database: Database) {
  return {
    /** Returns what an earlier request with the same idempotency key launched. Errors: idempotency_mismatch. */
    findLaunched: (request: IdempotentRequest, now: Date): Promise<LaunchedBenchmark | undefined> =>
      responses.find<LaunchedBenchmark>(database.sql, request, now),

    /**
     * Inserts a benchmark run with its trials, their pending scores, its event and the work item that starts it. A
     * repeated request returns the first response. Returns undefined and writes nothing if a scorer of the manifest was
     * deleted.
     *
     * Errors: suite_not_found · idempotency_mismatch.
     */
    launch: (
      run: BenchmarkRun,
      trials: readonly PlannedTrial[],
      event: NewEvent,
      request: IdempotentRequest | undefined,
    ): Promise<LaunchedBenchmark | undefined> =>
      database
        .transaction((tx) =>
          responses.once<LaunchedBenchmark>(tx, request, run.createdAt, async () => {
            if (!(await hasScorers(tx, run))) throw new ScorerDeleted();
            await insertRun(tx, run);
            await tx.query(INSERT_TRIALS, [run.uid, JSON.stringify(trials), run.createdAt]);
            await tx.query(INSERT_SCORES, [run.uid, run.manifest.identifiers.scorers.map(({ uid }) => uid)]);
            await appendEvents(tx, [event]);
            const payload: AdvanceBenchmark = { benchmark_run_uid: run.uid };
            await enqueueWork(tx, { kind: "advance-benchmark", key: run.uid, payload, teamUid: run.teamUid });
            return { uid: run.uid, state: run.state };
          }),
        )
        .catch((error: unknown) => {
          if (error instanceof ScorerDeleted) return undefined;
          throw error;
        }),
  };
}

export type LaunchStore = ReturnType<typeof launchStore>;

/**
 * Returns whether the scorers of the manifest still exist, and locks them and the suite against deletion until the
 * transaction ends. Errors: suite_not_found.
 */
async function hasScorers(tx: Sql, { suiteUid, manifest: { identifiers } }: BenchmarkRun): Promise<boolean> {
  const suites = await tx.query("SELECT FROM suites WHERE uid = $1 AND deleted_at IS NULL FOR SHARE", [suiteUid]);
  if (suites.rowCount === 0) throw notFound("suite");
  const scorers = await tx.query("SELECT FROM scorers WHERE uid = ANY ($1::uuid[]) ORDER BY uid FOR KEY SHARE", [
    identifiers.scorers.map(({ uid }) => uid),
  ]);
  return scorers.rowCount === identifiers.scorers.length;
}

async function insertRun(tx: Sql, run: BenchmarkRun): Promise<void> {
  await tx.query(
    `INSERT INTO benchmark_runs (uid, suite_uid, suite_name, suite_version, factory_uid, team_uid, state, manifest, manifest_hash, repetition_count, agent_uid, agent_name,
                                 parallelism, replayed_run_uid, creator_type, creator_uid, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17)`,
    [
      run.uid,
      run.suiteUid,
      run.suiteName,
      run.suiteVersion,
      run.factoryUid,
      run.teamUid,
      run.state,
      JSON.stringify(run.manifest),
      run.manifestHash,
      run.repetitionCount,
      run.agentUid,
      run.agentName,
      run.parallelism,
      run.replayedRunUid,
      run.creator.type,
      run.creator.uid,
      run.createdAt,
    ],
  );
}

const INSERT_TRIALS = `
  INSERT INTO trials (uid, benchmark_run_uid, position, configuration_uid, task_uid, rep_index, created_at)
  SELECT t.uid, $1, t.position, t.configuration_uid, t.task_uid, t.rep_index, $3
    FROM jsonb_to_recordset($2::jsonb) AS t (uid uuid, position integer, configuration_uid uuid, task_uid uuid, rep_index integer)
   ORDER BY t.position`;

const INSERT_SCORES = `
  INSERT INTO trial_scores (trial_uid, scorer_uid, state)
  SELECT t.uid, s.uid, 'awaiting_trial' FROM trials t CROSS JOIN unnest($2::uuid[]) AS s (uid) WHERE t.benchmark_run_uid = $1`;

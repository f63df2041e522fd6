import type { Database, Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { enqueueWork, restartDeadLettered } from "@millwright/work";

/** Work that replays one page of facts. */
export const REPLAY_FACTS = "replay_facts";

/** The payload of such work. */
export type ReplayPage = { readonly rebuildUid: string; readonly page: number };

export type ReplayPhase = "runs" | "deliveries";

/** Where a replay is. `page`: how many pages were replayed. */
export type ReplayPosition = {
  readonly uid: string;
  readonly phase: ReplayPhase;
  readonly page: number;
  readonly pageToken: string;
};

/** The result of a page. `failures`: why some of its facts could not be stored. */
export type ReplayedPage = {
  readonly count: number;
  readonly failures: readonly string[];
  readonly nextPageToken: string;
};

/** The progress of a rebuild. `deadLetterError`: set if the replay stopped after its last try. */
export type ReplayProgress = {
  readonly phase: ReplayPhase | "done";
  readonly runs: number;
  readonly deliveries: number;
  readonly failures: number;
  readonly lastError: string | null;
  readonly startedAt: Date;
  readonly deadLetterError: string | null;
};

const NEXT_PHASE = { runs: "deliveries", deliveries: "done" } as const;

/** The replay of a rebuild, as the service carries it out. */
export const replayStore = (database: Database) => ({
  /** Returns where the replay is if its next page is this one; undefined if another process has replayed the page. */
  async find(uid: string, page: number): Promise<ReplayPosition | undefined> {
    const { rows } = await database.sql.query<ReplayPosition>(
      `SELECT uid, phase, page, page_token AS "pageToken" FROM rebuilds WHERE uid = $1 AND page = $2 AND phase <> 'done'`,
      [uid, page],
    );
    return rows[0];
  },

  /** Stores the result of a page and enqueues the next one, in one transaction that `finish` takes part in. */
  advance: (
    { uid, phase, page }: ReplayPosition,
    { count, failures, nextPageToken }: ReplayedPage,
    finish: (tx: Sql) => Promise<void>,
  ): Promise<void> =>
    database.transaction(async (tx) => {
      const next = nextPageToken === "" ? NEXT_PHASE[phase] : phase;
      const { rowCount } = await tx.query(
        `UPDATE rebuilds
            SET ${phase} = ${phase} + $3,
                failures = failures + $4,
                last_error = coalesce($5, last_error),
                phase = $6,
                page = page + 1,
                page_token = $7,
                ended_at = CASE WHEN $6 = 'done' THEN now() END
          WHERE uid = $1
            AND page = $2`,
        [uid, page, count, failures.length, failures.at(-1) ?? null, next, nextPageToken],
      );
      if (rowCount === 1 && next !== "done") await enqueuePage(tx, uid, page + 1);
      await finish(tx);
    }),
});

export type ReplayStore = ReturnType<typeof replayStore>;

/** Starts a replay, or resumes the one that is not done. Returns its uid. */
export async function startReplay(tx: Sql): Promise<string> {
  await tx.query("INSERT INTO rebuilds (uid) VALUES ($1) ON CONFLICT ((true)) WHERE phase <> 'done' DO NOTHING", [
    newUid(),
  ]);
  const { rows } = await tx.query<{ uid: string; page: number }>(
    "SELECT uid, page FROM rebuilds WHERE phase <> 'done' FOR UPDATE",
  );
  const { uid, page } = rows[0]!;
  await enqueuePage(tx, uid, page);
  await restartDeadLettered(tx, REPLAY_FACTS);
  return uid;
}

export async function readReplay(sql: Sql, uid: string): Promise<ReplayProgress> {
  const { rows } = await sql.query<ReplayProgress>(
    `SELECT r.phase, r.runs, r.deliveries, r.failures, r.last_error AS "lastError", r.started_at AS "startedAt",
            (SELECT w.last_error
               FROM stream.work_items w
              WHERE w.kind = $2
                AND w.key = r.uid || ' ' || r.page
                AND w.state = 'dead_lettered') AS "deadLetterError"
       FROM rebuilds r
      WHERE r.uid = $1`,
    [uid, REPLAY_FACTS],
  );
  return rows[0]!;
}

/** Counts the pull requests of which no fact was stored since a time. */
export async function countPullRequestsRecordedBefore(sql: Sql, at: Date): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    "SELECT count(*) AS count FROM pull_requests WHERE recorded_at IS NULL OR recorded_at < $1",
    [at],
  );
  return rows[0]!.count;
}

/** Counts marked runs whose change of before a time is not stored. `failed`: those of which a refresh has failed. */
export async function countUnreadRuns(
  sql: Sql,
  before: Date,
): Promise<{ readonly waiting: number; readonly failed: number }> {
  const { rows } = await sql.query<{ waiting: number; failed: number }>(
    `SELECT count(*) FILTER (WHERE failures = 0) AS waiting, count(*) FILTER (WHERE failures > 0) AS failed
       FROM stale_runs
      WHERE changed_at <= $1`,
    [before],
  );
  return rows[0]!;
}

/** Returns whether a process of the service is connected to this database. */
export async function isServiceConnected(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query(
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'metrics' LIMIT 1",
  );
  return rows.length > 0;
}

async function enqueuePage(tx: Sql, uid: string, page: number): Promise<void> {
  const payload: ReplayPage = { rebuildUid: uid, page };
  await enqueueWork(tx, { kind: REPLAY_FACTS, key: `${uid} ${page}`, payload });
}

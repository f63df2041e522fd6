import type { Sql } from "@millwright/database";
import { isUuid, type ArtifactUid, type RunUid } from "@millwright/ids";
import type { ArtifactInsert, StoredArtifact } from "../domain/artifact.ts";
import type { Artifact, ArtifactType } from "../../runs/domain/run-artifact.ts";
import type { JsonObject } from "../../catalog/domain/agent-config.ts";

const COLUMNS = `a.uid, a.run_uid, a.artifact_type, a.data, a.content, a.blob_key, a.size_bytes, a.sha256, a.public, a.created_at,
  a.committed_at IS NOT NULL AS is_committed, p.status AS pull_request_status`;
const FROM = "FROM artifacts a LEFT JOIN pull_requests p ON p.artifact_uid = a.uid";

/** Stores artifacts of runs. Only committed artifacts are listed or found by uid. */
export const artifactStore = {
  async findByClientId(sql: Sql, runUid: string, clientArtifactId: string): Promise<StoredArtifact | undefined> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} ${FROM} WHERE a.run_uid = $1 AND a.client_artifact_id = $2`,
      [runUid, clientArtifactId],
    );
    return rows[0] && toArtifact(rows[0]);
  },

  /** Returns false and changes nothing if the run already has an artifact with that client id. */
  async insert(tx: Sql, artifact: ArtifactInsert): Promise<boolean> {
    const { rowCount } = await tx.query(
      `INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, content, blob_key, size_bytes, sha256, public, committed_at)
       VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9, $10, $11, CASE WHEN $12 THEN now() END)
       ON CONFLICT (run_uid, client_artifact_id) DO NOTHING`,
      [
        ...[
          artifact.uid,
          artifact.runUid,
          artifact.clientArtifactId,
          artifact.executionId,
          artifact.type,
          JSON.stringify(artifact.data),
        ],
        ...[
          artifact.content ?? null,
          artifact.blobKey ?? null,
          artifact.sizeBytes ?? null,
          artifact.sha256 ?? null,
          artifact.isPublic,
        ],
        artifact.isCommitted,
      ],
    );
    return rowCount === 1;
  },

  /** Returns the run's artifact, committed or not. */
  async findOfRun(sql: Sql, runUid: string, uid: string): Promise<StoredArtifact | undefined> {
    if (!isUuid(uid)) return undefined;
    const { rows } = await sql.query<Row>(`SELECT ${COLUMNS} ${FROM} WHERE a.uid = $1 AND a.run_uid = $2`, [
      uid,
      runUid,
    ]);
    return rows[0] && toArtifact(rows[0]);
  },

  /** Returns false if the artifact was committed before. */
  async commit(tx: Sql, uid: string): Promise<boolean> {
    return (
      (await tx.query("UPDATE artifacts SET committed_at = now() WHERE uid = $1 AND committed_at IS NULL", [uid]))
        .rowCount === 1
    );
  },

  /** Returns false if the artifact is absent or committed. */
  async dropUncommitted(tx: Sql, uid: string): Promise<boolean> {
    return (await tx.query("DELETE FROM artifacts WHERE uid = $1 AND committed_at IS NULL", [uid])).rowCount === 1;
  },

  async countOfRun(sql: Sql, runUid: string): Promise<number> {
    const { rows } = await sql.query<{ n: number }>("SELECT count(*) AS n FROM artifacts WHERE run_uid = $1", [runUid]);
    return rows[0]?.n ?? 0;
  },

  /** Returns the newest plan of a run with this title. */
  async findPlan(sql: Sql, runUid: string, title: string): Promise<StoredArtifact | undefined> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} ${FROM} WHERE a.run_uid = $1 AND a.artifact_type = 'PLAN' AND a.data ->> 'title' = $2 ORDER BY a.created_at DESC, a.uid DESC LIMIT 1`,
      [runUid, title],
    );
    return rows[0] && toArtifact(rows[0]);
  },

  /** Replaces the text of a plan. */
  async updatePlan(tx: Sql, uid: string, content: string): Promise<void> {
    await tx.query("UPDATE artifacts SET content = $2 WHERE uid = $1 AND artifact_type = 'PLAN'", [uid, content]);
  },

  /** Returns a committed artifact, without an access check. */
  async find(sql: Sql, uid: string): Promise<Artifact | undefined> {
    if (!isUuid(uid)) return undefined;
    const { rows } = await sql.query<Row>(`SELECT ${COLUMNS} ${FROM} WHERE a.uid = $1 AND a.committed_at IS NOT NULL`, [
      uid,
    ]);
    return rows[0] && toArtifact(rows[0]);
  },

  /** Returns the artifacts of all these runs, oldest first, without the contents of plans. */
  async listOfRuns(sql: Sql, runUids: readonly string[]): Promise<Artifact[]> {
    if (runUids.length === 0) return [];
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS.replace("a.content,", "null AS content,")} ${FROM} WHERE a.run_uid = ANY($1::uuid[]) AND a.committed_at IS NOT NULL ORDER BY a.committed_at, a.uid`,
      [runUids],
    );
    return rows.map(toArtifact);
  },

  async setPublic(sql: Sql, uid: string, isPublic: boolean): Promise<void> {
    await sql.query("UPDATE artifacts SET public = $2 WHERE uid = $1", [uid, isPublic]);
  },
};

export type ArtifactStore = typeof artifactStore;

type Row = {
  uid: ArtifactUid;
  run_uid: RunUid;
  artifact_type: ArtifactType;
  data: JsonObject;
  content: string | null;
  blob_key: string | null;
  size_bytes: number | null;
  sha256: string | null;
  public: boolean;
  created_at: Date;
  is_committed: boolean;
  pull_request_status: string | null;
};

const toArtifact = (row: Row): StoredArtifact => ({
  uid: row.uid,
  runUid: row.run_uid,
  type: row.artifact_type,
  data: row.data,
  isPublic: row.public,
  createdAt: row.created_at,
  isCommitted: row.is_committed,
  content: row.content ?? undefined,
  blobKey: row.blob_key ?? undefined,
  sizeBytes: row.size_bytes ?? undefined,
  sha256: row.sha256 ?? undefined,
  pullRequestStatus: row.pull_request_status ?? undefined,
});

import type { Sql } from "@millwright/database";
import type { FrozenConfig } from "../domain/resolved-run.ts";
import type { Run } from "../domain/run.ts";
import type { TrialSettings } from "../domain/trial-settings.ts";
import { RUN_COLUMNS, toRun, type RunRow } from "./run-fields.ts";

/** Returns a run with its frozen configuration, without an access check. */
export async function findRunWithFrozen(
  sql: Sql,
  uid: string,
): Promise<{ run: Run; frozen: FrozenConfig } | undefined> {
  const { rows } = await sql.query<RunRow & { frozen: FrozenConfig }>(
    `SELECT ${RUN_COLUMNS}, r.frozen FROM runs r WHERE r.uid = $1`,
    [uid],
  );
  return rows[0] && { run: toRun(rows[0]), frozen: rows[0].frozen };
}

/** Returns the frozen configuration of a run, without an access check. */
export const findFrozen = async (sql: Sql, uid: string): Promise<FrozenConfig | undefined> =>
  (await findRunWithFrozen(sql, uid))?.frozen;

/** Returns the settings that runs below a run of a benchmark trial inherit, or undefined for any other run. */
export async function findTrialSettings(sql: Sql, uid: string): Promise<TrialSettings | undefined> {
  const { rows } = await sql.query<{ trial: TrialSettings | null }>(
    "SELECT frozen -> 'trial' AS trial FROM runs WHERE uid = $1",
    [uid],
  );
  return rows[0]?.trial ?? undefined;
}

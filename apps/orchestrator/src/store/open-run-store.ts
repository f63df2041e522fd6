import type { Caller } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import type { Run } from "../domain/run.ts";
import { openRuns, type LinkAccess } from "../domain/session-sharing.ts";
import { RUN_COLUMNS, toRun, type RunRow } from "./run-store.ts";

/** Whether a caller is somebody who may come by a link: a person who is signed in. Agents and runs see what their team sees. */
const comesByLink = ({ principal, run }: Caller): boolean => principal.type === "user" && run === undefined;

/** The runs of a conversation that are open to a caller who has its link, oldest first. A malformed uid finds none. */
export async function listOpenRuns(sql: Sql, caller: Caller, conversationUid: string, access: LinkAccess): Promise<readonly Run[]> {
  if (!comesByLink(caller) || !isUuid(conversationUid)) return [];
  const { rows } = await sql.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 ORDER BY r.created_at, r.uid`, [conversationUid]);
  return openRuns(rows.map(toRun), access);
}

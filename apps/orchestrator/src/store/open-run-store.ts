import { teamsWith, type Caller, type Verb } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import type { Run } from "../domain/run.ts";
import { isOpen, type LinkAccess } from "../domain/session-sharing.ts";
import { newestOfConversations } from "./run-list-store.ts";
import { RUN_COLUMNS, toRun, type RunRow } from "./run-store.ts";

const VERBS = { view: "run.view", "take part": "run.manage" } as const satisfies Record<LinkAccess, Verb>;

/** Whether a caller is somebody who may come by a link: a person who is signed in, by a key that is good for that anywhere. Agents and runs see what their team sees. */
const comesByLink = (caller: Caller, access: LinkAccess): boolean => caller.principal.type === "user" && caller.run === undefined && teamsWith(caller, VERBS[access]).length > 0;

/** See `ListOpenRuns`. A malformed uid finds none. */
export async function listOpenRuns(sql: Sql, caller: Caller, conversationUid: string, access: LinkAccess): Promise<readonly Run[]> {
  if (!comesByLink(caller, access)) return [];
  const [newest] = await newestOfConversations(sql, [conversationUid]);
  if (!newest || !isOpen(newest, access)) return [];
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 AND r.owner_type = $2 AND r.owner_uid = $3 ORDER BY r.created_at, r.uid`;
  const { rows } = await sql.query<RunRow>(text, [conversationUid, newest.owner.type, newest.owner.uid]);
  return rows.map(toRun);
}

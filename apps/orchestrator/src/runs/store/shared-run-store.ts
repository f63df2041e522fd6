import { teamsWith, type Caller, type Verb } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import type { Run } from "../domain/run.ts";
import { isOpen, type LinkAccess } from "../domain/session-sharing.ts";
import { RUN_COLUMNS, toRun, type RunRow } from "./run-fields.ts";

const VERBS = { view: "run.view", "take part": "run.manage" } as const satisfies Record<LinkAccess, Verb>;

/**
 * Whether the caller may use a shared link: a signed-in user whose key permits `access` in any team. Agents and runs
 * see what their team sees.
 */
const mayUseLink = (caller: Caller, access: LinkAccess): boolean =>
  caller.principal.type === "user" && caller.run === undefined && teamsWith(caller, VERBS[access]).length > 0;

/**
 * Returns the runs of a conversation that its link opens to the caller (see `ListSharedRuns`). The conversation belongs
 * to the owner of its first run: runs of other owners neither open nor close it. A malformed uid finds none.
 */
export async function listSharedRuns(
  sql: Sql,
  caller: Caller,
  conversationUid: string,
  access: LinkAccess,
): Promise<readonly Run[]> {
  if (!mayUseLink(caller, access) || !isUuid(conversationUid)) return [];
  const { rows } = await sql.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs r
       JOIN (SELECT owner_type, owner_uid FROM runs WHERE conversation_uid = $1 ORDER BY created_at, uid LIMIT 1) first
         ON first.owner_type = r.owner_type AND first.owner_uid = r.owner_uid
      WHERE r.conversation_uid = $1
      ORDER BY r.created_at, r.uid`,
    [conversationUid],
  );
  const runs = rows.map(toRun);
  const newest = runs.at(-1);
  return newest && isOpen(newest, access) ? runs : [];
}

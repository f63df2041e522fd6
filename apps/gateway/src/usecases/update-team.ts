import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { appendEvents } from "@millwright/events";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { getTeam, lockTeam, updateTeamRow, type Team, type TeamChanges } from "../store/team-store.ts";

/** Changes what the client sent; nothing sent changes nothing. Errors: team_not_found · not_authorized. */
export async function updateTeam(deps: { tx: Tx; clock: Clock }, caller: Caller, input: { teamUid: string; changes: TeamChanges }): Promise<Team> {
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await lockTeam(deps.tx, input.teamUid);
  if (Object.keys(input.changes).length === 0) return getTeam(deps.tx, input.teamUid);
  const team = await updateTeamRow(deps.tx, input.teamUid, input.changes, deps.clock.now());
  await appendEvents(deps.tx.sql, [
    facts.teamUpdated(causedBy(caller), { uid: team.uid, teamUid: team.uid, version: team.version, payload: { changed: Object.keys(input.changes) } }),
  ]);
  return team;
}

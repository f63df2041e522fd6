import { isPlatformAdmin, requirePlatformAdmin, requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { appendEvents } from "@millwright/events";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { getTeam, lockTeam, updateTeamRow, type Team, type TeamChanges } from "../store/team-store.ts";

/**
 * Changes the fields that were sent.
 *
 * Errors: team_not_found · not_authorized. Changing a team's weight requires platform administrator rights, which allow
 * it for any team.
 */
export async function updateTeam(
  deps: { tx: Tx; clock: Clock },
  caller: Caller,
  input: { teamUid: string; changes: TeamChanges },
): Promise<Team> {
  const { queueWeight, ...ownChanges } = input.changes;
  if (queueWeight === undefined || Object.keys(ownChanges).length > 0 || !isPlatformAdmin(caller))
    requireVerb(caller, input.teamUid, "team.manage", "team");
  if (queueWeight !== undefined) requirePlatformAdmin(caller, "Changing a team's weight");
  await lockTeam(deps.tx, input.teamUid);
  const before = await getTeam(deps.tx, input.teamUid);
  if (Object.keys(input.changes).length === 0) return before;
  const team = await updateTeamRow(deps.tx, input.teamUid, input.changes, deps.clock.now());
  await appendEvents(deps.tx.sql, [
    facts.teamUpdated(causedBy(caller), {
      uid: team.uid,
      teamUid: team.uid,
      version: team.version,
      payload: { changed: Object.keys(input.changes), ...queueSettings(team) },
    }),
  ]);
  return team;
}

const queueSettings = ({ concurrencyLimit, queueWeight, queuePaused }: Team) => ({
  concurrency_limit: concurrencyLimit,
  queue_weight: queueWeight,
  queue_paused: queuePaused,
});

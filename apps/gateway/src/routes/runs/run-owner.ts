import { chooseTeam, type Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";

/**
 * Returns the owner of a new run or schedule. If `team` is absent, the owner is the team, or the user if the caller has
 * no team (a child of a personal run, a user without a team).
 */
export function ownerOf(
  team: boolean | undefined,
  caller: Caller,
  resource: "run" | "schedule" = "run",
): { ownerType: string; ownerUid: string } {
  const hasTeam = caller.teams.length > 0 || caller.activeTeamUid !== undefined;
  if (team ?? hasTeam) return { ownerType: "team", ownerUid: chooseTeam(caller) };
  if (caller.principal.type !== "user")
    throw invalidArgument(`personal_${resource}_of_agent`, `An agent's ${resource}s belong to its team.`);
  return { ownerType: "user", ownerUid: caller.principal.uid };
}

/**
 * Returns the uid of the calling agent. An agent executes the runs and schedules that it creates itself, with its key
 * or from one of its runs.
 */
export const ownAgentOf = ({ principal }: Caller): string | undefined =>
  principal.type === "agent" ? principal.uid : undefined;

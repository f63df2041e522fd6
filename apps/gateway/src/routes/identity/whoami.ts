import { z } from "zod";
import { VERBS } from "@millwright/caller";
import { ROLES, type IdentityOperations } from "../../identity/index.ts";
import { route, type Route } from "../../rest/index.ts";

const WhoAmI = z
  .object({
    principal: z.object({
      type: z.enum(["user", "service_account", "worker"]),
      uid: z.string(),
      display_name: z.string().optional(),
      email: z.string().optional(),
    }),
    platform_admin: z.boolean(),
    active_team_uid: z.string().optional(),
    teams: z.array(
      z.object({
        uid: z.string(),
        name: z.string(),
        role: z
          .enum(ROLES)
          .optional()
          .meta({ description: "Role of a user. Absent for agents, which have the permissions of a member." }),
        permissions: z
          .array(z.enum(VERBS))
          .meta({ description: "Permissions of this credential: those of the role, limited by the key's scopes." }),
      }),
    ),
    personal_permissions: z.array(z.enum(VERBS)).meta({
      description:
        "Permissions of this credential for the principal's personal runs, schedules and environments. Empty for agents, team runs and keys created by another user.",
    }),
    run_id: z.string().optional().meta({ description: "Present with a run token." }),
  })
  .meta({ id: "WhoAmI" });

/** Returns the route that describes the principal and permissions of a credential. */
export const whoAmIRoute = ({ teams, members }: Pick<IdentityOperations, "teams" | "members">): Route =>
  route({
    method: "GET",
    path: "/whoami",
    summary: "Read the principal and permissions of the credential",
    teamHeader: true,
    response: WhoAmI,
    handler: async ({ caller }) => {
      const { principal, run } = caller;
      const names = new Map(
        (await teams.list(caller.teams.map((team) => team.teamUid))).map((team) => [team.uid, team.name]),
      );
      const roles = principal.type === "user" && !run ? await members.rolesOf(principal.uid) : undefined;
      return {
        principal: {
          type:
            principal.type === "agent"
              ? ("service_account" as const)
              : principal.type === "worker"
                ? ("worker" as const)
                : ("user" as const),
          uid: principal.uid,
          display_name: principal.displayName || undefined,
          email: principal.email || undefined,
        },
        platform_admin: caller.platformAdmin,
        active_team_uid: names.has(caller.activeTeamUid ?? "") ? caller.activeTeamUid : undefined,
        teams: caller.teams.map(({ teamUid, verbs }) => {
          const role = roles?.get(teamUid);
          return { uid: teamUid, name: names.get(teamUid) ?? "", role, permissions: [...verbs] };
        }),
        personal_permissions: [...(caller.personal ?? [])],
        run_id: run?.runUid,
      };
    },
  });

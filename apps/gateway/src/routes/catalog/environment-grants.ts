import { z } from "zod";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { pathUid, route, timestamp, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { isoTime } from "../formats/json-values.ts";
import { environmentParams } from "./environment-schemas.ts";

const Grant = z
  .object({
    uid: z.string(),
    team_uid: z.string().optional(),
    user_uid: z.string().optional(),
    created_at: timestamp(),
  })
  .meta({ id: "EnvironmentGrant" });

export type EnvironmentGrantRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "catalog">;
  /** Returns whether a user is a member of one of the caller's teams. */
  readonly isTeammate: (caller: Caller, userUid: string) => Promise<boolean>;
};

/** Returns the routes that grant other teams and users access to an environment. They are Millwright extensions. */
export function environmentGrantRoutes({ upstreams: { catalog }, isTeammate }: EnvironmentGrantRoutesDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/agent/environments/{uid}/grants",
      extension: true,
      summary: "Grant a team or user access to an environment",
      verbs: ["run.manage"],
      description:
        "The grantee is a team of the caller (`team_uid`), or a member of one of the caller's teams (`user_uid`). A grant permits use, not changes. Runs of the grantee do not receive the environment's `secrets`.",
      errors: [403],
      status: 201,
      params: environmentParams,
      body: z.union([z.object({ team_uid: z.string() }), z.object({ user_uid: z.string() })]),
      response: Grant,
      handler: async (input) => {
        const [granteeType, granteeUid] =
          "team_uid" in input.body
            ? ["team", input.body.team_uid.toLowerCase()]
            : ["user", input.body.user_uid.toLowerCase()];
        if (granteeType === "user" && !(await isTeammate(input.caller, granteeUid))) throw notFound("user");
        const { grant } = await catalog.createEnvironmentGrant(
          { environmentUid: input.params.uid, granteeType, granteeUid },
          onBehalf(input),
        );
        return grantRecord(grant!);
      },
    }),
    route({
      method: "GET",
      path: "/agent/environments/{uid}/grants",
      extension: true,
      summary: "List the grants of an environment",
      verbs: ["run.manage"],
      description: "Requires permission to change the environment.",
      errors: [403],
      params: environmentParams,
      response: z.object({ grants: z.array(Grant) }),
      handler: async (input) => ({
        grants: (await catalog.listEnvironmentGrants({ environmentUid: input.params.uid }, onBehalf(input))).grants.map(
          grantRecord,
        ),
      }),
    }),
    route({
      method: "DELETE",
      path: "/agent/environments/{uid}/grants/{grant_uid}",
      extension: true,
      summary: "Revoke a grant of an environment",
      verbs: ["run.manage"],
      description: "Existing runs continue.",
      errors: [403],
      status: 204,
      params: environmentParams.extend({ grant_uid: pathUid("environment_grant") }),
      handler: async (input) => {
        await catalog.deleteEnvironmentGrant(
          { environmentUid: input.params.uid, uid: input.params.grant_uid },
          onBehalf(input),
        );
      },
    }),
  ];
}

const grantRecord = ({
  uid,
  granteeType,
  granteeUid,
  createdAt,
}: orchestrator.EnvironmentGrant): z.input<typeof Grant> => ({
  ...{ uid, [granteeType === "team" ? "team_uid" : "user_uid"]: granteeUid },
  created_at: isoTime(createdAt!),
});

import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { chooseTeam, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { invalidArgument, notFound } from "@millwright/errors";
import { EXTENSION, pathText, pathUid, route, Scope, timestamp, UserProfile, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";
import type { FindProfiles, Profile } from "../identity/profiles.ts";
import { RUN_STATES } from "../runs/run-schemas.ts";

/**
 * Configuration of an environment. `allowed_hosts` is a Millwright extension: it restricts network access to these
 * hosts among those that the worker allows. Absent: all hosts that the worker allows.
 */
export const EnvironmentConfig = z
  .object({
    name: z.string(),
    description: z.string().nullable(),
    docker_image: z.string(),
    github_repos: z.array(z.object({ owner: z.string(), repo: z.string() })),
    setup_commands: z.array(z.string()),
    providers: z.looseObject({}),
    secrets: z.array(z.object({ name: z.string() })),
    allowed_hosts: z.array(z.string()),
    failure_session_retention_minutes: z.int().min(1).max(60).nullable(),
  })
  .partial()
  .meta({ id: "EnvironmentConfig" });

const Environment = z
  .object({
    uid: z.string(),
    config: EnvironmentConfig,
    last_updated: timestamp(),
    setup_failed: z.boolean(),
    last_task_run_timestamp: timestamp().nullable().optional(),
    last_task_created: z
      .object({
        id: z.string(),
        title: z.string(),
        state: z.enum(RUN_STATES),
        created_at: timestamp(),
        updated_at: timestamp(),
        started_at: timestamp().nullable(),
      })
      .optional()
      .meta({ description: "The newest run in the environment that the caller may view." }),
    link_sharing: z.boolean().meta({
      ...EXTENSION,
      description: "True: anyone who knows the uid can use the environment. It then appears in their list.",
    }),
    access: z.enum(["owned", "granted", "link"]).meta({ ...EXTENSION, description: "How the caller obtained access." }),
    scope: Scope.optional(),
    creator: UserProfile.optional(),
    last_editor: UserProfile.optional(),
  })
  .meta({ id: "Environment" });

const params = z.object({ uid: pathText("environment", /^[A-Za-z0-9]{22}$/) });
const EnvironmentBody = z.object({
  config: EnvironmentConfig,
  team: z.boolean().optional(),
  link_sharing: z.boolean().optional(),
});

const Grant = z
  .object({
    uid: z.string(),
    team_uid: z.string().optional(),
    user_uid: z.string().optional(),
    created_at: timestamp(),
  })
  .meta({ id: "EnvironmentGrant" });

export type EnvironmentRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "catalog">;
  readonly findProfiles: FindProfiles;
  /** Returns whether a user is a member of one of the caller's teams. */
  readonly isTeammate: (caller: Caller, userUid: string) => Promise<boolean>;
};

/**
 * Returns the routes of environments. The published API only reads environments: the other operations are Millwright
 * extensions.
 */
export function environmentRoutes({
  upstreams: { catalog },
  findProfiles,
  isTeammate,
}: EnvironmentRoutesDeps): Route[] {
  const records = async (environments: readonly orchestrator.Environment[]) => {
    // Profiles of people in other teams are not disclosed.
    const own = environments.filter(({ access }) => access !== "granted" && access !== "link");
    const profiles = await findProfiles(
      [...new Set(own.flatMap((environment) => [environment.creatorUid, environment.lastEditorUid]))].filter(Boolean),
    );
    return environments.map((environment) =>
      environmentRecord(environment, own.includes(environment) ? profiles : new Map()),
    );
  };
  return [
    route({
      method: "GET",
      path: "/agent/environments",
      summary: "List environments",
      verbs: ["run.view"],
      teamHeader: true,
      query: z.object({ sort_by: z.enum(["name", "last_updated"]).default("last_updated") }),
      response: z.object({ environments: z.array(Environment) }),
      handler: async (input) => {
        const { environments } = await catalog.listEnvironments(
          { teamUid: input.caller.activeTeamUid ?? "", sortBy: input.query.sort_by },
          onBehalf(input),
        );
        return { environments: await records(environments) };
      },
    }),
    route({
      method: "POST",
      path: "/agent/environments",
      extension: true,
      summary: "Create an environment",
      verbs: ["run.manage"],
      description:
        "`team: false` creates a personal environment. `link_sharing` permits use by anyone who knows its uid.",
      errors: [403, 404],
      teamHeader: true,
      idempotent: true,
      status: 201,
      body: EnvironmentBody,
      response: Environment,
      handler: async (input) => {
        const upstreamRequest = {
          ...owner(input.body.team, input.caller),
          config: input.body.config as JsonObject,
          ...omitUndefined({ linkSharing: input.body.link_sharing }),
        };
        const { environment } = await catalog.createEnvironment(
          { environment: upstreamRequest, idempotencyKey: input.request.idempotency?.key ?? "" },
          onBehalf(input),
        );
        return (await records([environment!]))[0]!;
      },
    }),
    route({
      method: "PUT",
      path: "/agent/environments/{uid}",
      extension: true,
      summary: "Replace an environment's configuration",
      verbs: ["run.manage"],
      description: "Existing runs keep their configuration. `link_sharing` is unchanged unless sent.",
      errors: [403],
      params,
      body: EnvironmentBody.pick({ config: true, link_sharing: true }),
      response: Environment,
      handler: async (input) => {
        const upstreamRequest = {
          uid: input.params.uid,
          config: input.body.config as JsonObject,
          ...omitUndefined({ linkSharing: input.body.link_sharing }),
        };
        const { environment } = await catalog.replaceEnvironment({ environment: upstreamRequest }, onBehalf(input));
        return (await records([environment!]))[0]!;
      },
    }),
    route({
      method: "DELETE",
      path: "/agent/environments/{uid}",
      extension: true,
      summary: "Delete an environment",
      verbs: ["run.manage"],
      errors: [403],
      status: 204,
      params,
      handler: async (input) => {
        await catalog.deleteEnvironment({ uid: input.params.uid }, onBehalf(input));
      },
    }),
    route({
      method: "GET",
      path: "/agent/environments/{uid}",
      extension: true,
      summary: "Get an environment",
      verbs: ["run.view"],
      description:
        "An environment with `link_sharing` is readable by anyone who knows its uid, and then appears in their list.",
      params,
      response: Environment,
      handler: async (input) =>
        (await records([(await catalog.getEnvironment({ uid: input.params.uid }, onBehalf(input))).environment!]))[0]!,
    }),
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
      params,
      body: z.union([z.object({ team_uid: z.string() }), z.object({ user_uid: z.string() })]),
      response: Grant,
      handler: async (input) => {
        const grantee =
          "team_uid" in input.body
            ? { granteeType: "team", granteeUid: input.body.team_uid }
            : { granteeType: "user", granteeUid: input.body.user_uid };
        if ("user_uid" in input.body && !(await isTeammate(input.caller, input.body.user_uid))) throw notFound("user");
        const { grant } = await catalog.createEnvironmentGrant(
          { environmentUid: input.params.uid, ...grantee },
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
      params,
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
      params: params.extend({ grant_uid: pathUid("environment_grant") }),
      handler: async (input) => {
        await catalog.deleteEnvironmentGrant(
          { environmentUid: input.params.uid, uid: input.params.grant_uid },
          onBehalf(input),
        );
      },
    }),
  ];
}

function owner(team: boolean | undefined, caller: Caller): { ownerType: string; ownerUid: string } {
  if (team !== false) return { ownerType: "team", ownerUid: chooseTeam(caller) };
  if (caller.principal.type !== "user")
    throw invalidArgument(
      "personal_environment_of_agent",
      "Environments created with an agent's key are owned by its team. Use the key of a user for a personal one.",
    );
  return { ownerType: "user", ownerUid: caller.principal.uid };
}

const environmentRecord = (
  environment: orchestrator.Environment,
  profiles: ReadonlyMap<string, Profile>,
): z.input<typeof Environment> => ({
  uid: environment.uid,
  config: environment.config ?? {},
  last_updated: isoTime(environment.lastUpdated!),
  setup_failed: environment.setupFailed,
  last_task_run_timestamp: environment.lastTaskRunTimestamp ? isoTime(environment.lastTaskRunTimestamp) : null,
  last_task_created: environment.lastTaskCreated && taskRecord(environment.lastTaskCreated),
  link_sharing: environment.linkSharing ?? false,
  access: (environment.access || "owned") as "owned",
  scope: { type: environment.ownerType === "team" ? "Team" : "User", uid: environment.ownerUid },
  ...omitUndefined({
    creator: profiles.get(environment.creatorUid),
    last_editor: profiles.get(environment.lastEditorUid),
  }),
});

const taskRecord = ({ id, title, state, createdAt, updatedAt, startedAt }: orchestrator.LastTask) => ({
  ...{ id, title, state: state as "QUEUED", created_at: isoTime(createdAt!), updated_at: isoTime(updatedAt!) },
  started_at: startedAt ? isoTime(startedAt) : null,
});

const grantRecord = ({
  uid,
  granteeType,
  granteeUid,
  createdAt,
}: orchestrator.EnvironmentGrant): z.input<typeof Grant> => ({
  ...{ uid, [granteeType === "team" ? "team_uid" : "user_uid"]: granteeUid },
  created_at: isoTime(createdAt!),
});

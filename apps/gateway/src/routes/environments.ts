import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { chooseTeam, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { pathText, route, Scope, timestamp, UserProfile, type Route } from "../rest/index.ts";
import { onBehalf, type Neighbours } from "../clients/neighbours.ts";
import { present } from "@millwright/json";
import { isoTime } from "./json-values.ts";
import type { FindProfiles, Profile } from "./profiles.ts";

/** fields-runs §8.3; `allowed_hosts` is ours: what runs may reach of what their worker lets them; absent = all of that. */
const EnvironmentConfig = z
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
    scope: Scope.optional(),
    creator: UserProfile.optional(),
    last_editor: UserProfile.optional(),
  })
  .meta({ id: "Environment" });

const params = z.object({ uid: pathText("environment", /^[A-Za-z0-9]{22}$/) });
const EnvironmentBody = z.object({ config: EnvironmentConfig, team: z.boolean().optional() });

/** Where runs work: image, repositories, setup. Writing is ours; the specification only reads. */
export function environmentRoutes({ neighbours: { catalog }, findProfiles }: { neighbours: Pick<Neighbours, "catalog">; findProfiles: FindProfiles }): Route[] {
  const records = async (environments: readonly orchestrator.Environment[]) => {
    const profiles = await findProfiles([...new Set(environments.flatMap((one) => [one.creatorUid, one.lastEditorUid]))].filter(Boolean));
    return environments.map((one) => environmentRecord(one, profiles));
  };
  return [
    route({
      method: "GET",
      path: "/agent/environments",
      summary: "List environments",
      teamHeader: true,
      query: z.object({ sort_by: z.enum(["name", "last_updated"]).default("last_updated") }),
      response: z.object({ environments: z.array(Environment) }),
      handler: async (input) => {
        const { environments } = await catalog.listEnvironments({ teamUid: input.caller.activeTeamUid ?? "", sortBy: input.query.sort_by }, onBehalf(input));
        return { environments: await records(environments) };
      },
    }),
    route({
      method: "POST",
      path: "/agent/environments",
      summary: "Create an environment",
      description: "Ours. `team: false` makes a personal one.",
      errors: [403, 404],
      teamHeader: true,
      idempotent: true,
      status: 201,
      body: EnvironmentBody,
      response: Environment,
      handler: async (input) => {
        const asked = { ...owner(input.body.team, input.caller), config: input.body.config as JsonObject };
        const { environment } = await catalog.createEnvironment({ environment: asked, idempotencyKey: input.request.idempotency?.key ?? "" }, onBehalf(input));
        return (await records([environment!]))[0]!;
      },
    }),
    route({
      method: "PUT",
      path: "/agent/environments/{uid}",
      summary: "Replace an environment's configuration",
      description: "Ours. Runs that exist keep what they were created with.",
      errors: [403],
      params,
      body: EnvironmentBody.pick({ config: true }),
      response: Environment,
      handler: async (input) => {
        const { environment } = await catalog.replaceEnvironment({ environment: { uid: input.params.uid, config: input.body.config as JsonObject } }, onBehalf(input));
        return (await records([environment!]))[0]!;
      },
    }),
    route({
      method: "DELETE",
      path: "/agent/environments/{uid}",
      summary: "Delete an environment",
      description: "Ours.",
      errors: [403],
      status: 204,
      params,
      handler: async (input) => {
        await catalog.deleteEnvironment({ uid: input.params.uid }, onBehalf(input));
      },
    }),
  ];
}

function owner(team: boolean | undefined, caller: Caller): { ownerType: string; ownerUid: string } {
  if (team !== false) return { ownerType: "team", ownerUid: chooseTeam(caller) };
  if (caller.principal.type !== "user") throw invalidArgument("personal_environment_of_agent", "An agent's environments belong to its team.");
  return { ownerType: "user", ownerUid: caller.principal.uid };
}

const environmentRecord = (environment: orchestrator.Environment, profiles: ReadonlyMap<string, Profile>): z.input<typeof Environment> => ({
  uid: environment.uid,
  config: (environment.config ?? {}),
  last_updated: isoTime(environment.lastUpdated!),
  setup_failed: environment.setupFailed,
  last_task_run_timestamp: environment.lastTaskRunTimestamp ? isoTime(environment.lastTaskRunTimestamp) : null,
  scope: { type: environment.ownerType === "team" ? "Team" : "User", uid: environment.ownerUid },
  ...present({ creator: profiles.get(environment.creatorUid), last_editor: profiles.get(environment.lastEditorUid) }),
});

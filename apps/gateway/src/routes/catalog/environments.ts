import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { chooseTeam, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { route, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";
import type { FindProfiles, Profile } from "../identity/profiles.ts";
import { Environment, EnvironmentBody, environmentParams } from "./environment-schemas.ts";

export type EnvironmentRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "catalog">;
  readonly findProfiles: FindProfiles;
};

/**
 * Returns the routes of environments. The published API only reads environments: the other operations are Millwright
 * extensions.
 */
export function environmentRoutes({ upstreams: { catalog }, findProfiles }: EnvironmentRoutesDeps): Route[] {
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
      params: environmentParams,
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
      params: environmentParams,
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
      params: environmentParams,
      response: Environment,
      handler: async (input) =>
        (await records([(await catalog.getEnvironment({ uid: input.params.uid }, onBehalf(input))).environment!]))[0]!,
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

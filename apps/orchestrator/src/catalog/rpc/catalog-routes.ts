import type { Sql } from "@millwright/database";
import type { ModelPriceStore } from "../store/model-price-store.ts";
import { teamModels, type TeamModelsDeps } from "../usecases/team-models.ts";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { requireVerbAs, teamsInView, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { as, type TeamUid } from "@millwright/ids";
import { callerOf } from "@millwright/rpc";
import type { CodeHost } from "../domain/code-host.ts";
import type { Owner } from "@millwright/caller";
import { createCodeHost, deleteCodeHost, listCodeHosts, type CodeHostsDeps } from "../usecases/code-hosts.ts";
import { describePullRequests, type DescribePullRequestsDeps } from "../usecases/describe-pull-requests.ts";
import { grantEnvironment, listEnvironmentGrants, revokeEnvironmentGrant } from "../usecases/environment-grants.ts";
import {
  createEnvironment,
  deleteEnvironment,
  getEnvironment,
  listEnvironments,
  replaceEnvironment,
  type EnvironmentsDeps,
} from "../usecases/environments.ts";
import { readCodeHost, type ReadCodeHostDeps } from "../usecases/read-code-host.ts";
import { findSkills } from "../usecases/find-skills.ts";
import { listSkills, type ListSkillsDeps } from "../usecases/list-skills.ts";
import { modelMessage, skillMessage, environmentMessage, grantMessage, codeHostMessage } from "./catalog-messages.ts";

type ConnectedWorker = {
  readonly workerHost: string;
  readonly connectionCount: number;
  readonly connectedAt: Date;
  readonly lastSeenAt: Date;
  readonly sandbox: string;
  readonly sandboxFeatures: readonly string[];
};

export type CatalogRoutesDeps = EnvironmentsDeps &
  ListSkillsDeps &
  CodeHostsDeps &
  DescribePullRequestsDeps &
  ReadCodeHostDeps &
  TeamModelsDeps & {
    readonly sql: Sql;
    readonly modelPrices: Pick<ModelPriceStore, "currentOf">;
    /** Errors: environment_not_found, environment_personal. */
    readonly checkEnvironment: (caller: Caller, owner: Owner, uid: string) => Promise<void>;
    readonly connectedWorkers: (teamUids: readonly string[]) => Promise<readonly ConnectedWorker[]>;
  };

/** Registers CatalogService: the models, workers, skills, environments and code hosts that runs can use. */
export function catalogRoutes(router: ConnectRouter, deps: CatalogRoutesDeps): void {
  router.service(orchestrator.CatalogService, {
    async listModels({ teamUid }, context) {
      const teams = teamsInView(callerOf(context), "run.view");
      const team = teamUid === "" ? (teams.length === 1 ? teams[0] : undefined) : teams.find((uid) => uid === teamUid);
      const { defaultModelId, models } = await teamModels(deps, team);
      const prices = await deps.modelPrices.currentOf(
        deps.sql,
        models.map(({ id }) => id),
      );
      return { defaultModelId, models: models.map((model) => modelMessage(model, prices.get(model.id))) };
    },
    async listWorkers({ teamUid }, context) {
      const teams = teamsInView(callerOf(context), "run.view").filter((team) => teamUid === "" || team === teamUid);
      const workers = await deps.connectedWorkers(teams);
      return {
        workers: workers.map(({ connectedAt, lastSeenAt, sandboxFeatures, ...worker }) => ({
          ...worker,
          sandboxFeatures: [...sandboxFeatures],
          connectedAt: timestampFromDate(connectedAt),
          lastSeenAt: timestampFromDate(lastSeenAt),
        })),
      };
    },
    async listSkills({ teamUid, repo, refresh, sortBy, includeMalformed }, context) {
      if (!["", "name", "last_run"].includes(sortBy))
        throw invalidArgument("invalid_sort", "sort_by must be name or last_run.");
      const query = {
        teamUid: teamUid || undefined,
        repo: repo || undefined,
        isRefresh: refresh,
        sortBy: sortBy === "last_run" ? ("last_run" as const) : ("name" as const),
        includeMalformed,
      };
      return { skills: (await listSkills(deps, callerOf(context), query)).map(skillMessage) };
    },
    async findSkills({ teamUid, texts }, context) {
      return { specByText: Object.fromEntries(await findSkills(deps, callerOf(context), teamUid, texts)) };
    },
    async listEnvironments({ teamUid, sortBy }, context) {
      if (!["", "name", "last_updated"].includes(sortBy))
        throw invalidArgument("invalid_sort", "sort_by must be name or last_updated.");
      const views = await listEnvironments(
        deps,
        callerOf(context),
        teamUid || undefined,
        sortBy === "name" ? "name" : "last_updated",
      );
      return { environments: views.map(environmentMessage) };
    },
    async createEnvironment({ environment, idempotencyKey }, context) {
      const { ownerType = "", ownerUid = "", config = {} } = environment ?? {};
      if (ownerType !== "team" && ownerType !== "user")
        throw invalidArgument("invalid_environment", 'owner_type must be "team" or "user".');
      const owner: Owner = { type: ownerType, uid: ownerUid };
      return {
        environment: environmentMessage(
          await createEnvironment(
            deps,
            callerOf(context),
            owner,
            { config, linkSharing: environment?.linkSharing },
            idempotencyKey,
          ),
        ),
      };
    },
    async replaceEnvironment({ environment }, context) {
      return {
        environment: environmentMessage(
          await replaceEnvironment(deps, callerOf(context), environment?.uid ?? "", {
            config: environment?.config ?? {},
            linkSharing: environment?.linkSharing,
          }),
        ),
      };
    },
    async deleteEnvironment({ uid }, context) {
      await deleteEnvironment(deps, callerOf(context), uid);
      return {};
    },
    async getEnvironment({ uid }, context) {
      return { environment: environmentMessage(await getEnvironment(deps, callerOf(context), uid)) };
    },
    async checkEnvironment({ uid, ownerType, ownerUid }, context) {
      const caller = callerOf(context);
      const owner: Owner = { type: ownerType === "user" ? "user" : "team", uid: ownerUid };
      requireVerbAs(caller, owner, "run.view", owner.type);
      await deps.checkEnvironment(caller, owner, uid);
      return {};
    },
    async createEnvironmentGrant({ environmentUid, granteeType, granteeUid }, context) {
      if (granteeType !== "team" && granteeType !== "user")
        throw invalidArgument("invalid_grantee", 'grantee_type must be "team" or "user".');
      return {
        grant: grantMessage(
          await grantEnvironment(deps, callerOf(context), environmentUid, { type: granteeType, uid: granteeUid }),
        ),
      };
    },
    async listEnvironmentGrants({ environmentUid }, context) {
      return { grants: (await listEnvironmentGrants(deps, callerOf(context), environmentUid)).map(grantMessage) };
    },
    async deleteEnvironmentGrant({ environmentUid, uid }, context) {
      await revokeEnvironmentGrant(deps, callerOf(context), environmentUid, uid);
      return {};
    },
    async listCodeHosts({ teamUid }, context) {
      return { codeHosts: (await listCodeHosts(deps, callerOf(context), teamUid || undefined)).map(codeHostMessage) };
    },
    async createCodeHost({ codeHost, idempotencyKey }, context) {
      const {
        name = "",
        kind = "",
        baseUrl = "",
        root = "",
        secretName = "",
        owners = [],
        teamUid = "",
      } = codeHost ?? {};
      const requested = { name, kind: kind as CodeHost["kind"], baseUrl, root, secretName, owners };
      return {
        codeHost: codeHostMessage(
          await createCodeHost(deps, callerOf(context), as<TeamUid>(teamUid), requested, idempotencyKey),
        ),
      };
    },
    async describePullRequests({ teamUid, codeHostUid, repository, numbers }, context) {
      const found = await describePullRequests(deps, callerOf(context), {
        teamUid: as<TeamUid>(teamUid),
        codeHostUid,
        repository,
        numbers,
      });
      const distinct = (values: readonly string[]): string[] => [...new Set(values)];
      return {
        labels: distinct(found.flatMap(({ labels }) => labels)),
        authors: distinct(found.map(({ author }) => author)),
        baseBranches: distinct(found.map(({ base }) => base)),
        paths: distinct(found.flatMap(({ paths }) => paths)),
      };
    },
    async readCodeHost({ teamUid, changedSince, ...read }, context) {
      const { body, answeredAt, ...response } = await readCodeHost(deps, callerOf(context), {
        ...read,
        teamUid: as<TeamUid>(teamUid),
        changedSince: changedSince && timestampDate(changedSince),
      });
      return {
        ...response,
        answeredAt: timestampFromDate(answeredAt),
        body: body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body)),
      };
    },
    async deleteCodeHost({ uid }, context) {
      await deleteCodeHost(deps, callerOf(context), uid);
      return {};
    },
  });
}

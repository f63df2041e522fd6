import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import type { JsonObject } from "@millwright/json";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import { launchInvalid } from "../domain/launch.ts";
import type { RepoRef } from "../domain/suite.ts";
import type { TeamRunner } from "../usecases/freeze-runners.ts";
import type { SkillText } from "../usecases/frozen-records.ts";

/** Maximum number of refs that one call resolves. */
const REFS_MAX = 100;

/** Returns the client for environments, models, skills, runners and commits, which suites and launches need. */
export function launchCatalogClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  const evidence = clientFor(orchestrator.EvidenceService, transport, { signer });

  async function resolveCommits(requestId: string, teamUid: string, refs: readonly RepoRef[]): Promise<string[]> {
    const repositories = refs.map(({ owner, repo, ref }) => ({ owner, repo, ref }));
    try {
      const { repositories: pinned } = await evidence.resolveCommits(
        { teamUid, repositories },
        call(serviceCaller(signer.service, requestId)),
      );
      return pinned.map(({ commit }) => commit);
    } catch (error) {
      if (!isDomainError(error) || (error.kind !== "not_found" && error.kind !== "invalid_argument")) throw error;
      throw launchInvalid("starting_repo_refs", error.message);
    }
  }

  return {
    /** Returns the public configuration of an environment, or undefined if the caller cannot see it. */
    async environment(caller: Caller, uid: string): Promise<JsonObject | undefined> {
      try {
        const { environment } = await catalog.getEnvironment({ uid }, call(caller));
        return environment?.config;
      } catch (error) {
        if (isDomainError(error) && error.kind === "not_found") return undefined;
        throw error;
      }
    },

    /** Returns the models that a team can name, and the default model. */
    async models(caller: Caller, teamUid: string): Promise<{ defaultModelId: string; ids: ReadonlySet<string> }> {
      const { defaultModelId, models } = await catalog.listModels({ teamUid }, call(caller));
      return { defaultModelId, ids: new Set(models.map(({ id }) => id)) };
    },

    /**
     * Returns the skills that the factory's agents can use, by name. If several skills have the same name, the
     * factory's own takes precedence.
     */
    async skills(caller: Caller, teamUid: string, factoryUid: string): Promise<ReadonlyMap<string, SkillText>> {
      const { skills } = await catalog.listSkills({ teamUid }, call(caller));
      return new Map(
        skills.map(({ name, variants }) => {
          const { description = "", basePrompt = "" } =
            variants.find(({ repo }) => repo === factoryUid) ?? variants[0] ?? {};
          return [name, { name, description, body: basePrompt }];
        }),
      );
    },

    async runners(requestId: string, teamUid: string): Promise<TeamRunner[]> {
      const { runners } = await evidence.listRunners({ teamUid }, call(serviceCaller(signer.service, requestId)));
      return runners.map(({ uid, formerUid, name, content = {} }) => ({ uids: [uid, formerUid], name, content }));
    },

    /**
     * Returns the commits of refs, in the order of the refs.
     * Errors: launch_invalid (a repository or ref that does not exist) · those of the code host.
     */
    async commits(requestId: string, teamUid: string, refs: readonly RepoRef[]): Promise<string[]> {
      const commits: string[] = [];
      for (let start = 0; start < refs.length; start += REFS_MAX)
        commits.push(...(await resolveCommits(requestId, teamUid, refs.slice(start, start + REFS_MAX))));
      return commits;
    },
  };
}

import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import type { ModelCatalogue } from "../domain/models.ts";
import type { ResolveAgentRequest, ResolvedAgent } from "../domain/resolved-agent.ts";

export type TeamModelsDeps = {
  readonly identity: { resolveAgent(caller: Caller, request: ResolveAgentRequest): Promise<ResolvedAgent> };
  /** Returns the models of a team that has these secrets. */
  readonly models: (teamSecrets: readonly string[]) => ModelCatalogue;
};

/** Returns the models of a team; without a team, the models that the platform offers to every team. */
export async function teamModels(
  { identity, models }: TeamModelsDeps,
  teamUid: string | undefined,
): Promise<ModelCatalogue> {
  if (teamUid === undefined) return models([]);
  return models((await identity.resolveAgent(serviceCaller("orchestrator", newUid()), { teamUid })).teamSecrets);
}

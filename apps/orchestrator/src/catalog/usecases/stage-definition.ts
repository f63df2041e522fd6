import { teamModels, type TeamModelsDeps } from "./team-models.ts";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import { codeHostFor, type CodeHost } from "../domain/code-host.ts";
import {
  planChange,
  readDefinitionPart,
  referencesOf,
  type DefinitionPart,
  type PlanItem,
  type Spot,
} from "../domain/definition-part.ts";
import type { Environment } from "../domain/environment.ts";
import { findModel, type ModelCatalogue } from "../domain/models.ts";
import type { Owner } from "@millwright/caller";

/** A position in the definition that is wrong or doubtful. */
export type Diagnostic = Spot & {
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "warning";
};

export type StageDefinitionDeps = TeamModelsDeps & {
  readonly definitions: {
    find(factoryUid: FactoryUid, version: number): Promise<DefinitionPart | undefined>;
    stage(stage: { factoryUid: FactoryUid; teamUid: TeamUid; version: number; part: DefinitionPart }): Promise<void>;
  };
  readonly environments: Record<
    "find" | "findShared",
    (owners: readonly Owner[], uid: string) => Promise<Environment | undefined>
  >;
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly connectedWorkers: (teamUids: readonly string[]) => Promise<readonly { readonly workerHost: string }[]>;
};

export type StageDefinitionInput = {
  readonly factoryUid: FactoryUid;
  readonly teamUid: TeamUid;
  readonly version: number;
  readonly definition: JsonObject;
  /** Checks and plans the definition without storing it. */
  readonly isDryRun: boolean;
};

export type StageDefinitionResult = { readonly diagnostics: readonly Diagnostic[]; readonly plan: readonly PlanItem[] };

const HOSTED: readonly string[] = ["warp", "service"];

/**
 * Checks this service's part of a definition version, and plans it against the active version. Stores it without
 * activating it, unless there is an error. A name that only a disconnected worker or an unconnected repository could
 * resolve is a warning.
 *
 * Errors: definition_malformed.
 */
export async function stageDefinition(
  deps: StageDefinitionDeps,
  input: StageDefinitionInput,
): Promise<StageDefinitionResult> {
  const { factoryUid, teamUid, version, definition } = input;
  const part = readDefinitionPart(definition);
  const active = await deps.definitions.find(factoryUid, 0);
  const diagnostics = await check(deps, teamUid, definition, part, active);
  const plan = planChange(active, part);
  const isValid = diagnostics.every(({ severity }) => severity === "warning");
  if (isValid && !input.isDryRun) await deps.definitions.stage({ factoryUid, teamUid, version, part });
  return { diagnostics, plan };
}

async function check(
  deps: StageDefinitionDeps,
  teamUid: TeamUid,
  definition: JsonObject,
  part: DefinitionPart,
  active: DefinitionPart | undefined,
): Promise<Diagnostic[]> {
  const references = referencesOf(definition);
  const environments = await Promise.all(
    references.environments.map(async ({ at, environmentId }) =>
      ((await deps.environments.find([{ type: "team", uid: teamUid }], environmentId)) ??
      (await deps.environments.findShared([{ type: "team", uid: teamUid }], environmentId)))
        ? []
        : [error(at, `environmentId: the team has no environment "${environmentId}".`)],
    ),
  );
  // In definition files, the parser has already checked the names of runners.
  const runners = new Set([...part.runners, ...(active?.runners ?? [])].map(({ name }) => name));
  const workerHosts = (await deps.connectedWorkers([teamUid])).map(({ workerHost }) => workerHost);
  const codeHosts = await deps.codeHosts.list([teamUid]);
  const catalogue = await teamModels(deps, teamUid);
  return [
    ...references.models.flatMap(({ at, modelId }) => checkModel(catalogue, at, modelId)),
    ...environments.flat(),
    ...references.runners
      .filter(({ runner }) => !runners.has(runner))
      .map(({ at, runner }) => error(at, `runner: the factory has no runner "${runner}".`)),
    ...references.workerHosts
      .filter(({ workerHost }) => !HOSTED.includes(workerHost) && !workerHosts.includes(workerHost))
      .map(({ at, workerHost }) =>
        warning(at, `workerHost: no worker "${workerHost}" is connected; runs wait until one is.`),
      ),
    ...part.repositories.flatMap(({ owner, repo }, index) =>
      codeHostFor(codeHosts, owner)
        ? []
        : [
            warning(
              { path: "factory.yaml", keys: ["repositories", String(index)] },
              `repositories: no code host is connected for ${owner}/${repo}.`,
            ),
          ],
    ),
    ...part.runners
      .filter(({ os }) => os !== "linux")
      .map(({ name, os }) =>
        warning(
          { path: `runners/${name}.yaml`, keys: ["platform", "os"] },
          `platform.os: machines with ${os} are not offered; runs that name this runner are refused.`,
        ),
      ),
  ];
}

function checkModel(catalogue: ModelCatalogue, at: Spot, modelId: string): Diagnostic[] {
  const model = findModel(catalogue, modelId);
  if (!model) return [error(at, `model: there is no model "${modelId}".`)];
  return model.disabled ? [warning(at, `model: "${modelId}" is disabled. ${model.disabled.message}`)] : [];
}

const error = (at: Spot, message: string): Diagnostic => ({
  ...at,
  code: "FF_INVALID_REFERENCE",
  message,
  severity: "error",
});
const warning = (at: Spot, message: string): Diagnostic => ({
  ...at,
  code: "FF_INVALID_REFERENCE",
  message,
  severity: "warning",
});

import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { ScorerPart } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import { fileKeysOf, fileOf, readDefinedScorers, settingsOf } from "../domain/defined-scorer.ts";
import { SCORER_LIMITS } from "../domain/scorer-settings.ts";
import { dropStage, knownScorers, saveStage, type KnownScorer } from "../store/definition-store.ts";

/** `keys`: what leads to the value in the file. */
export type Diagnostic = { path: string; keys: string[]; code: string; message: string; severity: "error" | "warning" };
export type PlanItem = { kind: "scorer"; name: string; action: "create" | "delete"; changedFields: string[] };
export type StageRequest = { factoryUid: string; teamUid: string; version: number; definition: Readonly<Record<string, unknown>>; isDryRun: boolean };

export type StageDefinitionDeps = {
  database: Pick<Database, "sql">;
  models: {
    /** Ids of the models that a team can name. */
    modelIdsOf(teamUid: string): Promise<ReadonlySet<string>>;
  };
  clock: Clock;
};

/**
 * Checks the scorers of a definition: their settings, their models, and that their names are free. Stores them inert, unless something is wrong
 * or only a check is requested. Warns of each scorer that applying would delete, and says how many results it would take with it.
 *
 * Errors: definition_malformed.
 */
export async function stageDefinition(deps: StageDefinitionDeps, request: StageRequest): Promise<{ diagnostics: Diagnostic[]; plan: PlanItem[] }> {
  const { factoryUid, teamUid, version, isDryRun } = request;
  const scorers = readDefinedScorers(request.definition);
  const [known, models] = await Promise.all([knownScorers(deps.database.sql, factoryUid), scorers.length === 0 ? new Set<string>() : deps.models.modelIdsOf(teamUid)]);
  const errors = [...scorers.flatMap((part) => faultsOf(part, models)), ...duplicateNames(scorers, known)];
  if (errors.length === 0 && !isDryRun) await saveStage(deps.database.sql, { factoryUid, teamUid, version, part: { scorers } }, deps.clock.now());
  const slugs = new Set(scorers.map(({ slug }) => slug));
  const removed = known.flatMap(({ slug, resultCount }) => (slug === null || slugs.has(slug) ? [] : [{ slug, resultCount }]));
  const created = [...slugs].filter((slug) => !known.some((each) => each.slug === slug));
  const item = (action: PlanItem["action"]) => (name: string): PlanItem => ({ kind: "scorer", name, action, changedFields: [] });
  return { diagnostics: [...errors, ...removed.map(removal)], plan: [...created.map(item("create")), ...removed.map(({ slug }) => item("delete")(slug))] };
}

/** Deletes a stage that will never be activated; an absent one is fine. */
export const dropDefinition = ({ database }: Pick<StageDefinitionDeps, "database">, factoryUid: string, version: number): Promise<void> => dropStage(database.sql, factoryUid, version);

function faultsOf(part: ScorerPart, models: ReadonlySet<string>): Diagnostic[] {
  const path = fileOf(part);
  if (part.agents.length > SCORER_LIMITS.agents) {
    return [{ path, keys: ["agents"], code: "FF_LIMIT_EXCEEDED", message: `A scorer names at most ${SCORER_LIMITS.agents} agents (got ${part.agents.length}).`, severity: "error" }];
  }
  try {
    settingsOf(part, []);
  } catch (error) {
    if (!isDomainError(error) || error.kind !== "invalid_argument") throw error;
    return [{ path, keys: fileKeysOf(error.metadata["field"]), code: "FF_INVALID_VALUE", message: error.message, severity: "error" }];
  }
  if (models.has(part.model)) return [];
  return [{ path, keys: ["model"], code: "FF_INVALID_REFERENCE", message: `model: there is no model ${JSON.stringify(part.model)}.`, severity: "error" }];
}

/** Names are compared without case, as the API does. */
function duplicateNames(scorers: readonly ScorerPart[], known: readonly KnownScorer[]): Diagnostic[] {
  const owners = new Map(known.filter(({ slug }) => slug === null).map(({ name }) => [name.toLowerCase(), "a scorer of the API"]));
  return scorers.flatMap((part): Diagnostic[] => {
    const name = part.name.trim().toLowerCase();
    const owner = owners.get(name);
    if (owner !== undefined) return [{ path: fileOf(part), keys: ["name"], code: "FF_DUPLICATE_NAME", message: `The name ${part.name} is already that of ${owner}.`, severity: "error" }];
    owners.set(name, fileOf(part));
    return [];
  });
}

const removal = ({ slug, resultCount }: { slug: string; resultCount: number }): Diagnostic => ({
  path: fileOf({ slug }), keys: [], code: "FF_MISSING_FILE", severity: "warning",
  message: `Without this file, applying deletes the scorer ${slug} for good, with its results (${resultCount} runs), its reasons and its self-improvement.`,
});

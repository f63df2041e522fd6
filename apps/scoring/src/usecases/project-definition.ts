import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { readDefinedScorers } from "../domain/defined-scorer.ts";
import { readDefinedSuites } from "../domain/defined-suite.ts";
import type { Diagnostic } from "../domain/definition-diagnostic.ts";
import { dropStage, knownScorers, knownSuites, saveStage } from "../store/definition-store.ts";
import { scorerFaults, scorerRemovals } from "./stage-scorers.ts";
import { suiteFaults, suiteRemovals } from "./stage-suites.ts";

export type PlanItem = {
  kind: "scorer" | "benchmark";
  name: string;
  action: "create" | "delete";
  changedFields: string[];
};
export type StageRequest = {
  factoryUid: string;
  teamUid: string;
  version: number;
  definition: Readonly<Record<string, unknown>>;
  isDryRun: boolean;
};

export type StageDefinitionDeps = {
  database: Pick<Database, "sql">;
  models: {
    /** Returns the ids of the models that a team can name. */
    modelIdsOf(teamUid: string): Promise<ReadonlySet<string>>;
  };
  clock: Clock;
};

/**
 * Checks the scorers and benchmark suites of a definition: their settings, their models, and that their names are free.
 * Stores them without effect on the active version, unless there are errors or only a check is requested. Returns a
 * warning for each one that applying would delete, which states what happens to its results.
 *
 * Errors: definition_malformed.
 */
export async function stageDefinition(
  deps: StageDefinitionDeps,
  request: StageRequest,
): Promise<{ diagnostics: Diagnostic[]; plan: PlanItem[] }> {
  const { factoryUid, teamUid, version, isDryRun } = request;
  const { sql } = deps.database;
  const [scorers, suites] = [readDefinedScorers(request.definition), readDefinedSuites(request.definition)];
  const [scorersNow, suitesNow] = await Promise.all([knownScorers(sql, factoryUid), knownSuites(sql, factoryUid)]);
  const models = scorers.length + suites.length === 0 ? new Set<string>() : await deps.models.modelIdsOf(teamUid);
  const errors = [...scorerFaults(scorers, scorersNow, models), ...suiteFaults(suites, suitesNow, models, factoryUid)];
  if (errors.length === 0 && !isDryRun)
    await saveStage(sql, { factoryUid, teamUid, version, part: { scorers, suites } }, deps.clock.now());
  return {
    diagnostics: [...errors, ...scorerRemovals(scorers, scorersNow), ...suiteRemovals(suites, suitesNow)],
    plan: [...planOf("scorer", scorersNow, scorers), ...planOf("benchmark", suitesNow, suites)],
  };
}

/** Deletes a stage that will not be activated. An absent stage is not an error. */
export const discardDefinition = (
  { database }: Pick<StageDefinitionDeps, "database">,
  factoryUid: string,
  version: number,
): Promise<void> => dropStage(database.sql, factoryUid, version);

/** Returns what applying creates and deletes. The factories service determines updates by comparing the definitions. */
function planOf(
  kind: PlanItem["kind"],
  now: readonly { slug: string | null }[],
  next: readonly { slug: string }[],
): PlanItem[] {
  const known = now.flatMap(({ slug }) => slug ?? []);
  const item =
    (action: PlanItem["action"]) =>
    (name: string): PlanItem => ({ kind, name, action, changedFields: [] });
  const slugs = next.map(({ slug }) => slug);
  return [
    ...slugs.filter((slug) => !known.includes(slug)).map(item("create")),
    ...known.filter((slug) => !slugs.includes(slug)).map(item("delete")),
  ];
}

import type { ScorerPart } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import { fileKeysOf, fileOf, settingsOf } from "../domain/defined-scorer.ts";
import type { Diagnostic } from "../domain/definition-diagnostic.ts";
import { SCORER_LIMITS } from "../domain/scorer-settings.ts";

/** An existing scorer of the factory; `slug` is null if it was created through the API. */
export type KnownScorer = { readonly slug: string | null; readonly name: string; readonly scoreCount: number };

/** Returns errors of the scorers of a definition: invalid settings, unknown models and names that are taken. */
export const scorerFaults = (
  scorers: readonly ScorerPart[],
  known: readonly KnownScorer[],
  models: ReadonlySet<string>,
): Diagnostic[] => [...scorers.flatMap((part) => faultsOf(part, models)), ...takenNames(scorers, known)];

/** Returns a warning for each scorer that applying deletes. */
export function scorerRemovals(scorers: readonly ScorerPart[], known: readonly KnownScorer[]): Diagnostic[] {
  const slugs = new Set(scorers.map(({ slug }) => slug));
  return known.flatMap(({ slug, scoreCount }) =>
    slug === null || slugs.has(slug) ? [] : [removal({ slug, scoreCount })],
  );
}

function faultsOf(part: ScorerPart, models: ReadonlySet<string>): Diagnostic[] {
  const path = fileOf(part);
  if (part.agents.length > SCORER_LIMITS.agents) {
    return [
      {
        path,
        keys: ["agents"],
        code: "FF_LIMIT_EXCEEDED",
        message: `A scorer names at most ${SCORER_LIMITS.agents} agents (got ${part.agents.length}).`,
        severity: "error",
      },
    ];
  }
  try {
    settingsOf(part, []);
  } catch (error) {
    if (!isDomainError(error) || error.kind !== "invalid_argument") throw error;
    return [
      {
        path,
        keys: fileKeysOf(error.metadata["field"]),
        code: "FF_INVALID_VALUE",
        message: error.message,
        severity: "error",
      },
    ];
  }
  if (models.has(part.model)) return [];
  return [
    {
      path,
      keys: ["model"],
      code: "FF_INVALID_REFERENCE",
      message: `model: there is no model ${JSON.stringify(part.model)}.`,
      severity: "error",
    },
  ];
}

/**
 * Returns errors for names that are taken, compared without case, as in the API. The parser rejects equal names of
 * files.
 */
function takenNames(scorers: readonly ScorerPart[], known: readonly KnownScorer[]): Diagnostic[] {
  const taken = new Set(known.flatMap(({ slug, name }) => (slug === null ? [name.toLowerCase()] : [])));
  return scorers
    .filter(({ name }) => taken.has(name.trim().toLowerCase()))
    .map((part) => ({
      path: fileOf(part),
      keys: ["name"],
      code: "FF_DUPLICATE_NAME",
      message: `The name ${part.name} is already that of a scorer of the API.`,
      severity: "error",
    }));
}

const removal = ({ slug, scoreCount }: { slug: string; scoreCount: number }): Diagnostic => ({
  path: fileOf({ slug }),
  keys: [],
  code: "FF_MISSING_FILE",
  severity: "warning",
  message: `Without this file, applying deletes the scorer ${slug} for good, with its scores (${scoreCount}), its reasons and its self-improvement.`,
});

import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";

export type ActivateDefinitionDeps = {
  /** Rolls forward; answers the active version, or undefined when this one was never staged and none newer is active. */
  readonly activateVersion: (tx: Sql, factoryUid: string, version: number) => Promise<number | undefined>;
};

/**
 * Rolls this service forward to a version that factories committed, in the given transaction. Repeating it, or coming late with
 * an older version, changes nothing. Answers the active version. Errors: definition_not_staged (conflict).
 */
export async function activateDefinition(
  deps: ActivateDefinitionDeps,
  tx: Sql,
  factoryUid: string,
  version: number,
): Promise<number> {
  const active = await deps.activateVersion(tx, factoryUid, version);
  if (active !== undefined) return active;
  throw new DomainError({
    kind: "conflict",
    reason: "definition_not_staged",
    message: "This version of the definition was never staged.",
  });
}

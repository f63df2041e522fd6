import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";

export type ActivateDefinitionDeps = {
  /**
   * Activates the version unless a newer one is active. Returns the active version, or undefined if this version was
   * never staged and no newer one is active.
   */
  readonly activateVersion: (tx: Sql, factoryUid: string, version: number) => Promise<number | undefined>;
};

/**
 * Activates a version that the factories service has committed, in the given transaction. A repeated call, or a late
 * call with an older version, changes nothing. Returns the active version. Errors: definition_not_staged (conflict).
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
    message: "This version of the definition is not staged. Stage it, then activate it.",
  });
}

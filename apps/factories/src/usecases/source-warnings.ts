import type { Caller } from "@millwright/caller";
import { isDomainError } from "@millwright/errors";
import type { Factory } from "../domain/factory.ts";
import type { OwnedDiagnostic, Source } from "../domain/source.ts";
import type { ApplyStore } from "../store/apply-store.ts";
import { inOrder, placed } from "./check-source.ts";
import type { Owners } from "./source-deps.ts";

export type SourceWarningsDeps = {
  owners: Owners;
  applies: Pick<ApplyStore, "currentDefinition" | "currentFiles">;
};

/**
 * Returns a source with the current warnings of its active definition, which may differ from those of the apply: for
 * example, a worker has connected, or a code host was removed. If an owner is unavailable, all warnings of owners are
 * omitted.
 */
export async function withWarnings(
  deps: SourceWarningsDeps,
  caller: Caller,
  factory: Factory,
  source: Source,
): Promise<Source> {
  const { status } = source;
  const diagnostics = [...status.diagnostics.filter(isOfFiles), ...(await warningsNow(deps, caller, factory))].sort(
    inOrder,
  );
  return { ...source, status: { ...status, diagnostics } };
}

/** Returns whether a stored diagnostic belongs to the files. Earlier releases also stored the warnings of owners. */
const isOfFiles = ({ severity, code }: OwnedDiagnostic): boolean => severity === "error" || code === "FF_NOT_SERVED";

async function warningsNow(
  { owners, applies }: SourceWarningsDeps,
  caller: Caller,
  factory: Factory,
): Promise<OwnedDiagnostic[]> {
  const definition = await applies.currentDefinition(factory.uid);
  if (!definition) return [];
  try {
    const { diagnostics } = await owners.stage(caller, {
      factory,
      definition,
      version: factory.currentVersion,
      isDryRun: true,
    });
    const warnings = diagnostics.filter(({ severity }) => severity === "warning");
    return warnings.length === 0 ? [] : await placed(warnings, { files: await applies.currentFiles(factory.uid) });
  } catch (error) {
    if (isDomainError(error)) return [];
    throw error;
  }
}

import type { Caller } from "@millwright/caller";
import type { Definition, TreeFile } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import type { FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import type { OwnedDiagnostic, Source } from "../domain/source.ts";
import { inOrder, placed } from "./check-source.ts";
import type { Owners } from "./source-deps.ts";

export type SourceWarningsDeps = {
  owners: Owners;
  applies: {
    currentDefinition(uid: FactoryUid): Promise<Definition | undefined>;
    /** The files of the version in force. */
    currentFiles(uid: FactoryUid): Promise<readonly TreeFile[]>;
  };
};

/**
 * A source with the warnings of its definition in force as they are now: a worker may have connected since it was applied, or a
 * code host been removed. Without an owner that is away, the warnings of its part are left out.
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

/** Earlier releases stored the warnings of owners, too. */
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

import type { Caller } from "@millwright/caller";
import type { Factory } from "../domain/factory.ts";
import type { Source } from "../domain/source.ts";
import { findFactory } from "./scope.ts";
import type { SourceDeps } from "./source-deps.ts";
import { withWarnings, type SourceWarningsDeps } from "./source-warnings.ts";

/** Returns a factory's source and active version. Errors: factory_not_found · not_authorized. */
export async function getSource(
  deps: Pick<SourceDeps, "factories" | "runs" | "sources"> & SourceWarningsDeps,
  caller: Caller,
  factoryUid: string,
): Promise<{ factory: Factory; source: Source | undefined }> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  const source = await deps.sources.find(factory.uid);
  return { factory, source: source && (await withWarnings(deps, caller, factory, source)) };
}

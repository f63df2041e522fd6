import type { Caller } from "@millwright/caller";
import type { Definition } from "@millwright/definition";
import type { FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import type { PlanItem } from "../domain/plan.ts";
import type { OwnedDiagnostic, Source, SourceSettings, Tree } from "../domain/source.ts";
import type { ScopeDeps } from "./scope.ts";

/** What every use case about definition sources needs. */
export type SourceDeps = ScopeDeps & {
  sources: { find(uid: FactoryUid): Promise<Source | undefined> };
  trees: {
    /** Takes the tree at its newest revision. Errors: source_unreachable, repository_not_allowed, definition_invalid (beyond the bounds). */
    take(settings: SourceSettings): Promise<Tree>;
    /** Errors: repository_not_allowed. */
    check(settings: SourceSettings): void;
  };
};

/** The services that own parts of a definition; each sees it whole and takes its own. */
export type Owners = {
  /** Asks all of them, or none of the stages counts. Errors: what one of them refuses with, or unavailable. */
  stage(caller: Caller, stage: { factory: Factory; version: number; definition: Definition; isDryRun: boolean }): Promise<{ diagnostics: OwnedDiagnostic[]; plan: PlanItem[] }>;
};

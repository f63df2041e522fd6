import type { Caller } from "@millwright/caller";
import type { Definition } from "@millwright/definition";
import type { TeamUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import type { PlanItem } from "../domain/plan.ts";
import type { SourceSettings, Tree, UnplacedDiagnostic } from "../domain/source.ts";
import type { SourceStore } from "../store/source-store.ts";
import type { ScopeDeps } from "./scope.ts";

/** Dependencies of every use case about definition sources. */
export type SourceDeps = ScopeDeps & {
  sources: Pick<SourceStore, "find">;
  trees: {
    /**
     * Reads the tree at its newest revision, or that of a repository at the commit `sha`. A secret that the settings
     * name must be of this team.
     * Errors: source_unreachable · repository_not_allowed · internal_address_refused · source_refused · secret_missing
     * · source_too_large · branch_head_gone (conflict: the repository does not have that commit) · definition_invalid
     * (exceeds the limits of a definition).
     */
    take(settings: SourceSettings, teamUid: TeamUid, sha?: string): Promise<Tree>;
    /** Checks whether the source is allowed. Errors: repository_not_allowed. */
    check(settings: SourceSettings): void;
  };
};

/** The services that own parts of a definition. Each receives the whole definition and uses its part. */
export type Owners = {
  /** Stages at every owner. Errors: the error of any owner, or unavailable. */
  stage(
    caller: Caller,
    stage: { factory: Factory; version: number; definition: Definition; isDryRun: boolean },
  ): Promise<{ diagnostics: UnplacedDiagnostic[]; plan: PlanItem[] }>;
};

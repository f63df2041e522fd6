import { requireVerb, type Caller, type Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { Scorer, ScorerUid } from "../domain/scorer.ts";
import type { ScorerStore } from "../store/scorer-store.ts";

/** A factory as the factories service describes it. */
export type FactoryView = {
  readonly uid: string;
  readonly teamUid: string;
  /** One of live, service_files and external_files. */
  readonly management: string;
  /** Default configuration of judge runs. */
  readonly scorerDefaults: { readonly [key: string]: unknown };
  /** Model that judges benchmark tasks. If absent, the platform's default is used. */
  readonly scoringDefaultModel?: string;
  /** Repositories of runs of its agents, unless their environment has repositories. */
  readonly repositories: readonly { readonly owner: string; readonly repo: string; readonly codeForge: string }[];
};

export type ScopeDeps = {
  factories: {
    /** Returns a factory. Errors: factory_not_found (absent or not visible to the caller). */
    get(caller: Caller, uid: string): Promise<FactoryView>;
  };
};

export type ScorerScopeDeps = ScopeDeps & { scorers: Pick<ScorerStore, "find"> };

/**
 * Returns a factory and checks the caller's permission. Errors: factory_not_found (absent, malformed or not visible) ·
 * not_authorized.
 */
export async function findFactory(deps: ScopeDeps, caller: Caller, uid: string, verb: Verb): Promise<FactoryView> {
  if (!isUuid(uid)) throw notFound("factory");
  const factory = await deps.factories.get(caller, uid);
  requireVerb(caller, factory.teamUid, verb, "factory");
  return factory;
}

/**
 * Returns a scorer of a factory and checks the caller's permission. Errors: those of `findFactory` · scorer_not_found
 * (absent, malformed or of another factory).
 */
export async function findScorer(
  deps: ScorerScopeDeps,
  caller: Caller,
  factoryUid: string,
  scorerUid: string,
  verb: Verb,
): Promise<{ factory: FactoryView; scorer: Scorer }> {
  const factory = await findFactory(deps, caller, factoryUid, verb);
  const scorer = isUuid(scorerUid) ? await deps.scorers.find(as<ScorerUid>(scorerUid.toLowerCase())) : undefined;
  if (!scorer || scorer.factoryUid !== factory.uid) throw notFound("scorer");
  return { factory, scorer };
}

import { requireVerb, type Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import {
  PERIOD_UNITS,
  periodsOf,
  resolveRange,
  type DateRange,
  type Period,
  type PeriodUnit,
} from "@millwright/periods";

/** A factory as its owner describes it. `repositories`: owner/repo, of its definition. */
export type FactoryView = { readonly uid: string; readonly teamUid: string; readonly repositories: readonly string[] };

/** What a response is about. */
export type FactoryScope = {
  readonly factory: FactoryView;
  /** The data is complete up to this time. */
  readonly asOf: Date;
};

/** `periods`: only with a unit. */
export type RangeScope = FactoryScope & {
  readonly range: DateRange;
  readonly unit?: PeriodUnit;
  readonly periods: readonly Period[];
};

export type RangeQuery = {
  readonly factoryUid: string;
  readonly start?: Date | undefined;
  readonly end?: Date | undefined;
  readonly groupByPeriod: string;
};

export type ResolveScopeDeps = {
  readonly factories: {
    /** Returns the factory as the caller sees it. Errors: factory_not_found (absent or not visible). */
    get(caller: Caller, uid: string): Promise<FactoryView>;
  };
  /** Returns the time up to which the read models are complete. */
  readonly asOf: () => Promise<Date>;
  readonly clock: { now(): Date };
};

/**
 * Resolves a factory and checks the right to view it. Errors: factory_not_found (absent, malformed or not visible) ·
 * not_authorized.
 */
export async function resolveFactory(
  { factories, asOf }: ResolveScopeDeps,
  caller: Caller,
  factoryUid: string,
): Promise<FactoryScope> {
  if (!isUuid(factoryUid)) throw notFound("factory");
  const factory = await factories.get(caller, factoryUid);
  requireVerb(caller, factory.teamUid, "factory.view", "factory");
  return { factory, asOf: await asOf() };
}

/**
 * Resolves the common query. Errors: those of `resolveFactory` · date_range_invalid · group_by_period_invalid ·
 * too_many_periods.
 */
export async function resolveScope(deps: ResolveScopeDeps, caller: Caller, query: RangeQuery): Promise<RangeScope> {
  const scope = await resolveFactory(deps, caller, query.factoryUid);
  const range = resolveRange({ start: query.start, end: query.end }, deps.clock.now());
  if (query.groupByPeriod === "") return { ...scope, range, periods: [] };
  const unit = PERIOD_UNITS.find((known) => known === query.groupByPeriod);
  if (!unit)
    throw invalidArgument(
      "group_by_period_invalid",
      `group_by_period must be day, week or month (got "${query.groupByPeriod}").`,
    );
  return { ...scope, range, unit, periods: periodsOf(range, unit) };
}

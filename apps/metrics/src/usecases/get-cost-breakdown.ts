import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import {
  COST_GROUPINGS,
  groupCosts,
  type CostGroup,
  type CostGrouping,
  type CostGroups,
} from "../domain/cost-groups.ts";
import { periodWindow } from "../domain/period-window.ts";
import { UNKNOWN_KEY } from "../domain/unknown-key.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { nameCreators, type NamedCreator, type PrincipalDeps } from "./name-creators.ts";
import { resolveScope, type RangeQuery, type RangeScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type GetCostBreakdownDeps = ResolveScopeDeps &
  PrincipalDeps & {
    readonly costs: Pick<MetricsQueries["costs"], "listCostCells" | "newestAgentNames">;
  };

export type CostBreakdown = Omit<CostGroups, "groups"> & {
  readonly scope: RangeScope;
  readonly grouping: CostGrouping;
  readonly groups: readonly (CostGroup & NamedCreator)[];
};

/**
 * Returns the spend that occurred in the range, of the whole factory and of every group with spend. Whole trees belong
 * to the source and the creator of their roots; by agent and by configured model each run is on its own.
 *
 * Errors: those of `resolveScope` · group_by_invalid (invalid_argument).
 */
export async function getCostBreakdown(
  deps: GetCostBreakdownDeps,
  caller: Caller,
  query: RangeQuery,
  groupBy: string,
): Promise<CostBreakdown> {
  const scope = await resolveScope(deps, caller, query);
  const grouping = COST_GROUPINGS.find((known) => known === groupBy);
  if (!grouping)
    throw invalidArgument(
      "group_by_invalid",
      `group_by must be one of ${COST_GROUPINGS.join(", ")} (got "${groupBy}").`,
    );
  const cells = await deps.costs.listCostCells(periodWindow(scope.factory.uid, scope.range, scope.periods), grouping);
  const { groups, ...sums } = groupCosts(cells, scope.periods.length);
  const known = groups.filter(({ key }) => key !== UNKNOWN_KEY);
  const names = await NAME_GROUPS[grouping](deps, caller, scope, known);
  return {
    scope,
    grouping,
    ...sums,
    groups: groups.map((group) => ({ ...group, ...(names.get(group.key) ?? keyAsLabel(group.key)) })),
  };
}

type NameGroups = (
  deps: GetCostBreakdownDeps,
  caller: Caller,
  scope: RangeScope,
  groups: readonly CostGroup[],
) => Promise<ReadonlyMap<string, NamedCreator>>;

const nameNoGroups: NameGroups = async () => new Map();

const nameUsers: NameGroups = (deps, caller, { factory }, groups) =>
  nameCreators(
    deps,
    caller,
    factory.teamUid,
    groups.map(({ key, creatorType }) => ({ type: creatorType, uid: key })),
  );

/** Labels an agent with the name that its newest run recorded, which is known even if the gateway does not respond. */
const nameAgents: NameGroups = async (deps, caller, { factory }, groups) => {
  const uids = groups.map(({ key }) => key);
  const [principals, names] = await Promise.all([
    nameCreators(
      deps,
      caller,
      factory.teamUid,
      uids.map((uid) => ({ type: "agent", uid })),
    ),
    deps.costs.newestAgentNames(factory.uid, uids),
  ]);
  return new Map(
    [...principals].map(([uid, { label, deleted }]) => [
      uid,
      { label: names.get(uid) ?? label, deleted, photoUrl: undefined },
    ]),
  );
};

const NAME_GROUPS: Readonly<Record<CostGrouping, NameGroups>> = {
  source: nameNoGroups,
  model: nameNoGroups,
  user: nameUsers,
  agent: nameAgents,
};

const keyAsLabel = (key: string): NamedCreator => ({ label: key, deleted: false, photoUrl: undefined });

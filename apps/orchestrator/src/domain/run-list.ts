import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { RUN_STATES, type RunState } from "./run.ts";

export const RUN_SORTS = ["updated_at", "created_at", "title", "agent"] as const;
export type RunSort = (typeof RUN_SORTS)[number];

/** What a list of runs asks for; times are exclusive bounds (fields-runs §6.2). */
export type RunListQuery = {
  /** Only this team's. */
  readonly teamUid?: string;
  readonly states: readonly RunState[];
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly updatedAfter?: Date;
  readonly factoryUids?: readonly string[];
  /** Strictly below this run, at any depth. */
  readonly ancestorRunUid?: string;
  readonly sortBy: RunSort;
  readonly isDescending: boolean;
};

/** As asked, unchecked: "" and empty lists say nothing. */
export type RunListRequest = Omit<RunListQuery, "states" | "sortBy" | "isDescending" | "factoryUids"> & {
  readonly states: readonly string[];
  readonly factoryUids: readonly string[];
  readonly sortBy: string;
  readonly sortOrder: string;
};

/** Errors: invalid_state, invalid_sort. A factory uid that is none matches nothing, as any unknown one. */
export function checkRunList(request: RunListRequest): RunListQuery {
  const { states, factoryUids, sortBy, sortOrder, ...bounds } = request;
  const unknown = states.find((state) => !RUN_STATES.includes(state as RunState));
  if (unknown !== undefined) throw invalidArgument("invalid_state", `There is no run state "${unknown}".`);
  const sort = (sortBy || "updated_at") as RunSort;
  if (!RUN_SORTS.includes(sort)) throw invalidArgument("invalid_sort", `Runs are sorted by ${RUN_SORTS.join(", ")}.`);
  if (!["", "asc", "desc"].includes(sortOrder)) throw invalidArgument("invalid_sort", "The order is asc or desc.");
  return {
    ...bounds,
    states: [...new Set(states as RunState[])].sort(),
    ...(factoryUids.length > 0 ? { factoryUids: [...new Set(factoryUids.filter(isUuid))].sort() } : {}),
    sortBy: sort,
    isDescending: sortOrder !== "asc",
  };
}

/**
 * Where a page ended: the time of the first page, and the sort key and uid of the last row. Rows that came to be (or, when
 * sorted by update, were changed) after the first page are left out of later ones, so no row appears twice.
 */
export type RunPosition = { readonly asOf: Date; readonly key: string | null; readonly uid: string };

export const sealedPosition = ({ asOf, key, uid }: RunPosition): readonly unknown[] => [asOf.getTime(), key, uid];

/** A position that was sealed by us; the seal vouches for its form. */
export function openedPosition(sealed: readonly unknown[]): RunPosition {
  const [asOfMs, key, uid] = sealed as [number, string | null, string];
  return { asOf: new Date(asOfMs), key, uid };
}

import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { SOURCES } from "./new-run.ts";
import { RUN_STATES, type RunState } from "./run.ts";

export const RUN_SORTS = ["updated_at", "created_at", "title", "agent"] as const;
export type RunSort = (typeof RUN_SORTS)[number];

export const TASK_STATUSES = ["running", "complete", "failed", "blocked", "cancelled"] as const;
/** The status of a top-level run; "running" is evaluated for its whole tree. */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** Maximum number of metadata pairs in the filter of a list. */
export const METADATA_PAIRS_MAX = 5;

/** The metadata key that automations set on the runs they start. */
const AUTOMATION_KEY = "automation_uid";

/** The filter value of runs without an environment. */
export const EMPTY_ENVIRONMENT = "empty-environment";

/** Matches one run, or runs whose title, skill spec or beginning of the prompt contains each word. */
export type RunSearch = { readonly runUid: string } | { readonly words: readonly string[] };

/** The filters and the order of a list of runs. Times are exclusive bounds. */
export type RunListQuery = {
  /** Only runs of this team. */
  readonly teamUid?: string;
  readonly states: readonly RunState[];
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly updatedAfter?: Date;
  readonly factoryUids?: readonly string[];
  /** Only runs executed by an agent of a factory. */
  readonly factoryOnly?: true;
  /** Only descendants of this run, at any depth. */
  readonly ancestorRunUid?: string;
  /** Only runs of this conversation. A uid that is no UUID matches nothing. */
  readonly conversationUid?: string;
  readonly name?: string;
  readonly modelId?: string;
  readonly creatorUid?: string;
  readonly sources?: readonly string[];
  /** `EMPTY_ENVIRONMENT`: runs without an environment. */
  readonly environmentUid?: string;
  readonly skillSpec?: string;
  readonly scheduleUid?: string;
  readonly artifactType?: string;
  /** If set, the list contains only top-level runs. */
  readonly taskStatuses?: readonly TaskStatus[];
  readonly executorUid?: string;
  readonly executionLocation?: "LOCAL" | "REMOTE";
  /** A run must have every pair. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly search?: RunSearch;
  /** Only these runs, which have words similar to the search. Replaces `search`. */
  readonly runUids?: readonly string[];
  readonly sortBy: RunSort;
  readonly isDescending: boolean;
};

/** The request of a list, unchecked. "" and empty lists set no filter. */
export type RunListRequest = Omit<
  RunListQuery,
  | "runUids"
  | "states"
  | "sortBy"
  | "isDescending"
  | "factoryUids"
  | "sources"
  | "search"
  | "taskStatuses"
  | "executionLocation"
  | "metadata"
> & {
  readonly states: readonly string[];
  readonly sources: readonly string[];
  readonly search: string;
  readonly taskStatuses: readonly string[];
  readonly executionLocation: string;
  readonly metadata: Readonly<Record<string, string>>;
  /**
   * Only runs that this automation started: the runs on which it set its metadata key, and their descendants, which
   * inherit the key.
   */
  readonly automationUid: string;
  readonly factoryUids: readonly string[];
  readonly sortBy: string;
  readonly sortOrder: string;
};

/**
 * Returns the checked query. A factory uid that is no UUID matches nothing, like any unknown uid.
 *
 * Errors: invalid_state, invalid_source, invalid_task_status, invalid_execution_location, too_many_metadata_pairs,
 * invalid_sort.
 */
export function checkRunList(request: RunListRequest): RunListQuery {
  const {
    states,
    factoryUids,
    sources,
    search,
    taskStatuses,
    executionLocation,
    metadata,
    automationUid,
    sortBy,
    sortOrder,
    ...bounds
  } = request;
  const unknown = states.find((state) => !RUN_STATES.includes(state as RunState));
  if (unknown !== undefined)
    throw invalidArgument("invalid_state", `state must be one of ${RUN_STATES.join(", ")} (got "${unknown}").`);
  if (!sources.every((source) => SOURCES.includes(source)))
    throw invalidArgument("invalid_source", `source must be one of ${SOURCES.join(", ")}.`);
  const status = taskStatuses.find((requested) => !TASK_STATUSES.includes(requested as TaskStatus));
  if (status !== undefined)
    throw invalidArgument(
      "invalid_task_status",
      `task_status must be one of ${TASK_STATUSES.join(", ")} (got "${status}").`,
    );
  if (!["", "LOCAL", "REMOTE"].includes(executionLocation))
    throw invalidArgument(
      "invalid_execution_location",
      `execution_location must be LOCAL or REMOTE (got "${executionLocation}").`,
    );
  if (Object.keys(metadata).length > METADATA_PAIRS_MAX)
    throw invalidArgument(
      "too_many_metadata_pairs",
      `A list can filter by at most ${METADATA_PAIRS_MAX} metadata keys (got ${Object.keys(metadata).length}).`,
    );
  const stamped = automationUid === "" ? metadata : { ...metadata, [AUTOMATION_KEY]: automationUid };
  const matchesNothing = AUTOMATION_KEY in metadata && metadata[AUTOMATION_KEY] !== stamped[AUTOMATION_KEY];
  const sort = (sortBy || "updated_at") as RunSort;
  if (!RUN_SORTS.includes(sort))
    throw invalidArgument("invalid_sort", `sort_by must be one of ${RUN_SORTS.join(", ")} (got "${sort}").`);
  if (!["", "asc", "desc"].includes(sortOrder))
    throw invalidArgument("invalid_sort", `sort_order must be asc or desc (got "${sortOrder}").`);
  return {
    ...bounds,
    states: [...new Set(states as RunState[])].sort(),
    factoryUids: matchesNothing
      ? []
      : factoryUids.length > 0
        ? [...new Set(factoryUids.filter(isUuid))].sort()
        : undefined,
    sources: sources.length > 0 ? [...new Set(sources)].sort() : undefined,
    taskStatuses: taskStatuses.length > 0 ? [...new Set(taskStatuses as TaskStatus[])].sort() : undefined,
    executionLocation: (executionLocation as "LOCAL" | "REMOTE" | "") || undefined,
    metadata: Object.keys(stamped).length > 0 ? stamped : undefined,
    search: search.trim() ? readSearch(search.trim()) : undefined,
    sortBy: sort,
    isDescending: sortOrder !== "asc",
  };
}

const WORDS_MAX = 20;

/**
 * Returns the parsed search. The full id of a run, or the URL of its page, matches exactly. Any other text is matched
 * word by word, literally and case-insensitively.
 */
function readSearch(text: string): RunSearch {
  const page = URL.canParse(text) ? /\/runs\/([^/]+)\/?$/.exec(new URL(text).pathname)?.[1] : undefined;
  const uid = page ?? text;
  return isUuid(uid) ? { runUid: uid.toLowerCase() } : { words: inLowerCase(text).split(/\s+/).slice(0, WORDS_MAX) };
}

/**
 * Returns the text in lower case as PostgreSQL converts the searched texts: each letter separately to one letter,
 * independently of the letters around it.
 */
const inLowerCase = (text: string): string =>
  Array.from(text, (letter) => String.fromCodePoint(letter.toLowerCase().codePointAt(0)!)).join("");

/**
 * The position at which a page ended: the time of the first page, and the sort key and uid of the last row. Rows that
 * were created (or, if sorted by update, changed) after the first page are left out of later pages, so no row occurs
 * twice.
 */
export type RunPosition = {
  readonly asOf: Date;
  readonly key: string | null;
  readonly uid: string;
  /**
   * True if the list contains runs with words similar to those of the search, because no run contains the words
   * themselves.
   */
  readonly isSimilar?: boolean;
};

export const sealedPosition = ({ asOf, key, uid, isSimilar = false }: RunPosition): readonly unknown[] => [
  asOf.getTime(),
  key,
  uid,
  ...(isSimilar ? [true] : []),
];

/** Returns a position from a page token. The token is sealed by this service, so its form is trusted. */
export function openedPosition(sealed: readonly unknown[]): RunPosition {
  const [asOfMs, key, uid, isSimilar = false] = sealed as [number, string | null, string, boolean?];
  return { asOf: new Date(asOfMs), key, uid, isSimilar };
}

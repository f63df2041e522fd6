import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { SOURCES } from "./new-run.ts";
import { RUN_STATES, type RunState } from "./run.ts";

export const RUN_SORTS = ["updated_at", "created_at", "title", "agent"] as const;
export type RunSort = (typeof RUN_SORTS)[number];

export const TASK_STATUSES = ["running", "complete", "failed", "blocked", "cancelled"] as const;
/** What became of a top-level run; "running" looks at its whole tree (platform-api §3). */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** How many pairs of metadata a list may ask for (platform-api §8). */
export const METADATA_PAIRS_MAX = 5;

/** The metadata key with which automations stamp the runs that they start. */
const AUTOMATION_KEY = "automation_uid";

/** Stands for having no environment (platform-api §4). */
export const EMPTY_ENVIRONMENT = "empty-environment";

/** One run, or runs whose title, skill spec or beginning of the prompt contains each of the words. */
export type RunSearch = { readonly runUid: string } | { readonly words: readonly string[] };

/** What a list of runs asks for; times are exclusive bounds (fields-runs §6.2). */
export type RunListQuery = {
  /** Only this team's. */
  readonly teamUid?: string;
  readonly states: readonly RunState[];
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly updatedAfter?: Date;
  readonly factoryUids?: readonly string[];
  /** Only runs that an agent of a factory executes. */
  readonly factoryOnly?: true;
  /** Strictly below this run, at any depth. */
  readonly ancestorRunUid?: string;
  readonly name?: string;
  readonly modelId?: string;
  readonly creatorUid?: string;
  readonly sources?: readonly string[];
  /** `EMPTY_ENVIRONMENT`: runs without one. */
  readonly environmentUid?: string;
  readonly skillSpec?: string;
  readonly scheduleUid?: string;
  readonly artifactType?: string;
  /** Only top-level runs then. */
  readonly taskStatuses?: readonly TaskStatus[];
  readonly executorUid?: string;
  readonly executionLocation?: "LOCAL" | "REMOTE";
  /** Every pair must be there. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly search?: RunSearch;
  /** Only these runs: those with words similar to the search, in its place. */
  readonly runUids?: readonly string[];
  readonly sortBy: RunSort;
  readonly isDescending: boolean;
};

/** As asked, unchecked: "" and empty lists say nothing. */
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
  /** Only what this automation started: runs that it stamped, and their descendants, which inherit the stamp. */
  readonly automationUid: string;
  readonly factoryUids: readonly string[];
  readonly sortBy: string;
  readonly sortOrder: string;
};

/** Errors: invalid_state, invalid_source, invalid_task_status, invalid_execution_location, too_many_metadata_pairs, invalid_sort. A factory uid that is none matches nothing, as any unknown one. */
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
  if (unknown !== undefined) throw invalidArgument("invalid_state", `There is no run state "${unknown}".`);
  if (!sources.every((source) => SOURCES.includes(source)))
    throw invalidArgument("invalid_source", "There is no such source of runs.");
  const status = taskStatuses.find((one) => !TASK_STATUSES.includes(one as TaskStatus));
  if (status !== undefined)
    throw invalidArgument("invalid_task_status", `A task status is one of ${TASK_STATUSES.join(", ")}.`);
  if (!["", "LOCAL", "REMOTE"].includes(executionLocation))
    throw invalidArgument("invalid_execution_location", "A run is executed LOCAL or REMOTE.");
  if (Object.keys(metadata).length > METADATA_PAIRS_MAX)
    throw invalidArgument(
      "too_many_metadata_pairs",
      `A list asks for at most ${METADATA_PAIRS_MAX} pairs of metadata.`,
    );
  const stamped = automationUid === "" ? metadata : { ...metadata, [AUTOMATION_KEY]: automationUid };
  const sort = (sortBy || "updated_at") as RunSort;
  if (!RUN_SORTS.includes(sort)) throw invalidArgument("invalid_sort", `Runs are sorted by ${RUN_SORTS.join(", ")}.`);
  if (!["", "asc", "desc"].includes(sortOrder)) throw invalidArgument("invalid_sort", "The order is asc or desc.");
  return {
    ...bounds,
    states: [...new Set(states as RunState[])].sort(),
    ...(factoryUids.length > 0 ? { factoryUids: [...new Set(factoryUids.filter(isUuid))].sort() } : {}),
    ...(sources.length > 0 ? { sources: [...new Set(sources)].sort() } : {}),
    ...(taskStatuses.length > 0 ? { taskStatuses: [...new Set(taskStatuses as TaskStatus[])].sort() } : {}),
    ...(executionLocation ? { executionLocation: executionLocation as "LOCAL" | "REMOTE" } : {}),
    ...(Object.keys(stamped).length > 0 ? { metadata: stamped } : {}),
    ...(search.trim() ? { search: readSearch(search.trim()) } : {}),
    sortBy: sort,
    isDescending: sortOrder !== "asc",
  };
}

const WORDS_MAX = 20;

/** The full id or the page of a run is exact; anything else is taken word by word, literally, in any case. */
function readSearch(text: string): RunSearch {
  const page = URL.canParse(text) ? /\/runs\/([^/]+)\/?$/.exec(new URL(text).pathname)?.[1] : undefined;
  const uid = page ?? text;
  return isUuid(uid) ? { runUid: uid.toLowerCase() } : { words: inLowerCase(text).split(/\s+/).slice(0, WORDS_MAX) };
}

/** Letter by letter, as PostgreSQL does it with the texts that are searched: none becomes two, and none depends on the letters around it. */
const inLowerCase = (text: string): string =>
  Array.from(text, (letter) => String.fromCodePoint(letter.toLowerCase().codePointAt(0)!)).join("");

/**
 * Where a page ended: the time of the first page, and the sort key and uid of the last row. Rows that came to be (or, when
 * sorted by update, were changed) after the first page are left out of later ones, so no row appears twice.
 */
export type RunPosition = {
  readonly asOf: Date;
  readonly key: string | null;
  readonly uid: string;
  /** The list is of runs with words similar to those of the search: none has the words themselves. */
  readonly isSimilar?: boolean;
};

export const sealedPosition = ({ asOf, key, uid, isSimilar = false }: RunPosition): readonly unknown[] => [
  asOf.getTime(),
  key,
  uid,
  ...(isSimilar ? [true] : []),
];

/** A position that was sealed by us; the seal vouches for its form. */
export function openedPosition(sealed: readonly unknown[]): RunPosition {
  const [asOfMs, key, uid, isSimilar = false] = sealed as [number, string | null, string, boolean?];
  return { asOf: new Date(asOfMs), key, uid, isSimilar };
}

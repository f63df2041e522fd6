import { isUuid } from "@millwright/ids";
import {
  EMPTY_ENVIRONMENT,
  type RunListQuery,
  type RunPosition,
  type RunSearch,
  type RunSort,
  type TaskStatus,
} from "../domain/run-list.ts";
import { isTerminal, RUN_STATES, type RunState } from "../domain/run.ts";
import type { Bind } from "../../storage/store/binding.ts";
import { containing, suggesting } from "./run-texts.ts";

/**
 * SQL expression of each sort key, and the type to which a cursor's value is cast. The order of collation `C` is the
 * same on every server.
 */
export const KEYS: Readonly<Record<RunSort, { readonly expression: string; readonly type: string }>> = {
  updated_at: { expression: "r.updated_at", type: "timestamptz" },
  created_at: { expression: "r.created_at", type: "timestamptz" },
  title: { expression: 'lower(r.title) COLLATE "C"', type: "text" },
  agent: { expression: 'r.skill_spec COLLATE "C"', type: "text" },
};

/**
 * Returns the ORDER BY lists of a run list: `ofRuns` sorts `runs r` within one range of its index, `ofRange` sorts rows
 * selected from that range with their `sort_key`, `ofAll` sorts the whole list.
 */
export function orderOf({ sortBy, isDescending }: RunListQuery): {
  readonly ofRuns: string;
  readonly ofRange: string;
  readonly ofAll: string;
} {
  const direction = isDescending ? "DESC" : "ASC";
  const ofRange = `sort_key ${direction}, uid ${direction}`;
  // Runs without a skill come last in both directions; the other sort keys are never null.
  return {
    ofRuns: `${KEYS[sortBy].expression} ${direction}, r.uid ${direction}`,
    ofRange,
    ofAll: sortBy === "agent" ? `(sort_key IS NULL), ${ofRange}` : ofRange,
  };
}

/**
 * How a condition is used: `walk` checks it run by run along an index, `set` finds all matching rows of `runs`, `texts`
 * finds all matching rows of `TEXTS`. Conditions that are not on a column of the run are written differently for each
 * use.
 */
type Use = "walk" | "set" | "texts";

/**
 * Returns conditions over `runs r` or `TEXTS r`: `bounds` limit the range of the sort order's index, `filters` are all
 * remaining conditions. The index on texts finds the words of `q` by `trigrams`.
 */
export function conditionsOf(
  query: RunListQuery,
  bind: Bind,
  use: Use,
  trigrams: readonly string[] = [],
): { readonly bounds: readonly string[]; readonly filters: readonly string[] } {
  const { sortBy, createdAfter } = query;
  const { created, updated } = timeConditions(query, bind);
  // A run created after a time was updated after that time, too.
  if (createdAfter && sortBy === "updated_at") updated.push(`r.updated_at > ${bind(createdAfter, "timestamptz")}`);
  const skill = skillConditions(query, bind);
  const filters = [
    ...columnConditions(query, bind),
    ...(use === "set" ? endedOrNot(query) : []),
    ...otherTableConditions(query, bind, use, trigrams),
  ];
  const byOrder: Readonly<Record<RunSort, string[][]>> = {
    created_at: [created, updated, skill],
    updated_at: [updated, created, skill],
    title: [[], created, updated, skill],
    agent: [skill, created, updated],
  };
  const [bounds, ...rest] = byOrder[sortBy];
  return { bounds: bounds!, filters: [...rest.flat(), ...filters] };
}

function timeConditions(
  { createdAfter, createdBefore, updatedAfter }: RunListQuery,
  bind: Bind,
): { readonly created: string[]; readonly updated: string[] } {
  const compared = (column: string, time: Date | undefined): string[] =>
    time ? [`${column} ${bind(time, "timestamptz")}`] : [];
  return {
    created: [...compared("r.created_at >", createdAfter), ...compared("r.created_at <", createdBefore)],
    updated: compared("r.updated_at >", updatedAfter),
  };
}

/** Runs updated later than this after their creation have an index of their own. */
const LATE = "interval '1 day'";

/**
 * Returns the conditions of the one or two walks that cover the list.
 *
 * Creation time and update time are close to each other for all but few runs. If one of them is bounded on the side at
 * which a walk ordered by the other begins, a single walk reads every run before the bound. Two walks avoid that: one
 * reads the runs with close times, starting near the bound, the other reads the few remaining runs.
 */
export function halvesOf({ sortBy, isDescending, createdBefore, updatedAfter }: RunListQuery, bind: Bind): string[][] {
  const late = `r.updated_at - r.created_at > ${LATE}`;
  const onTime = `r.updated_at - r.created_at <= ${LATE}`;
  if (sortBy === "updated_at" && isDescending && createdBefore)
    return [[onTime, `r.updated_at < ${bind(createdBefore, "timestamptz")} + ${LATE}`], [late]];
  if (sortBy === "created_at" && !isDescending && updatedAfter)
    return [[onTime, `r.created_at > ${bind(updatedAfter, "timestamptz")} - ${LATE}`], [late]];
  return [[]];
}

/**
 * Returns the number of index ranges that are left after a position. The order by agent consists of two ranges: runs
 * with a skill, then runs without a skill.
 */
export const partsAfter = ({ sortBy }: RunListQuery, after: RunPosition | undefined): number =>
  sortBy === "agent" && after?.key !== null ? 2 : 1;

/** Returns the conditions for the runs after a position in the range `part` of the ranges that are left. */
export function conditionsAfter(
  { sortBy, isDescending }: RunListQuery,
  after: RunPosition | undefined,
  bind: Bind,
  part: number,
): string[] {
  const { expression, type } = KEYS[sortBy];
  const comparison = isDescending ? "<" : ">";
  const sealed = after
    ? [`${sortBy === "updated_at" ? "r.updated_at" : "r.created_at"} <= ${bind(after.asOf, "timestamptz")}`]
    : [];
  const without = [...sealed, "r.skill_spec IS NULL", `${expression} IS NULL`];
  if (after?.key === null) return [...without, `r.uid ${comparison} ${bind(after.uid, "uuid")}`];
  if (part === 1) return without;
  const beyond = after
    ? [`(${expression}, r.uid) ${comparison} (${bind(after.key, type)}, ${bind(after.uid, "uuid")})`]
    : [];
  return [...sealed, ...(sortBy === "agent" ? ["(r.skill_spec IS NULL) IS FALSE"] : []), ...beyond];
}

function columnConditions(query: RunListQuery, bind: Bind): string[] {
  const { states, factoryOnly, executionLocation, metadata, conversationUid } = query;
  return [
    ...(states.length > 0 ? [`r.state = ANY(${bind(states, "text[]")})`] : []),
    ...(factoryOnly ? ["r.factory_uid IS NOT NULL"] : []),
    ...(conversationUid === undefined
      ? []
      : [isUuid(conversationUid) ? `r.conversation_uid = ${bind(conversationUid, "uuid")}` : "false"]),
    ...equal("r.execution_location", executionLocation, bind),
    ...attributeConditions(query, bind),
    ...(metadata ? [`r.metadata @> ${bind(JSON.stringify(metadata), "jsonb")} AND r.metadata <> '{}'`] : []),
  ];
}

const equal = (column: string, value: string | undefined, bind: Bind): string[] =>
  value === undefined ? [] : [`${column} = ${bind(value, "text")}`];

/** Returns the conditions on attributes that a run has from its creation. Each has an index of its own, of ended runs. */
const createdWith = (query: RunListQuery, bind: Bind): string[] => [
  ...attributeConditions(query, bind),
  ...skillConditions(query, bind),
];

function attributeConditions(query: RunListQuery, bind: Bind): string[] {
  const { factoryUids, sources, environmentUid } = query;
  return [
    ...(factoryUids ? [`r.factory_uid = ANY(${bind(factoryUids, "uuid[]")})`] : []),
    ...(sources ? [`r.source = ANY(${bind(sources, "text[]")})`] : []),
    ...equal("r.config_name", query.name, bind),
    ...equal("r.model_id", query.modelId, bind),
    ...equal("r.creator_uid", query.creatorUid, bind),
    ...equal("r.executor_uid", query.executorUid, bind),
    ...equal("r.schedule->>'schedule_id'", query.scheduleUid, bind),
    ...(environmentUid === EMPTY_ENVIRONMENT
      ? ["r.environment_uid IS NULL"]
      : equal("r.environment_uid", environmentUid, bind)),
  ];
}

/** Uses the expressions of the index for the sort by agent, in which the runs of one skill are ordered by uid. */
const skillConditions = ({ skillSpec }: RunListQuery, bind: Bind): string[] =>
  skillSpec === undefined
    ? []
    : [`(r.skill_spec IS NULL) IS FALSE AND r.skill_spec COLLATE "C" = ${bind(skillSpec, "text")}`];

const among = (states: readonly RunState[]): string => `r.state IN (${states.map((state) => `'${state}'`).join(", ")})`;
const ENDED = among(RUN_STATES.filter(isTerminal));
const NOT_ENDED = among(RUN_STATES.filter((state) => !isTerminal(state)));

/**
 * Returns a condition on the state that lets the planner use the partial indexes. The indexes on a run's creation
 * attributes contain terminal runs only; active runs are found by their state. Without a filter by
 * state the condition is true for every run, but the planner needs it to combine the indexes.
 */
function endedOrNot(query: RunListQuery): string[] {
  const { states, factoryOnly, metadata } = query;
  const usesPartialIndex =
    createdWith(query, withoutParameters).length > 0 || factoryOnly !== undefined || metadata !== undefined;
  const ended = states.filter(isTerminal).length;
  if (!usesPartialIndex || (states.length > 0 && ended === 0)) return [];
  return [states.length > 0 && ended === states.length ? ENDED : `(${ENDED} OR ${NOT_ENDED})`];
}

/**
 * Returns sets of FROM clauses with conditions. Each finds rows with one index; their numbers, added up over a set, are an
 * upper bound of the number of listed runs. `owned` returns the condition that limits `runs r` to the owners.
 */
export function countableRows(query: RunListQuery, bind: Bind, owned: () => string): string[][] {
  const states = statesOf(query);
  const inStates = (): string => `r.state = ANY(${bind(states!, "text[]")})`;
  const areEnded = states?.every(isTerminal) === true;
  const { created, updated } = timeConditions(query, bind);
  const conditions = [
    ...(states && !states.includes("SUCCEEDED") ? [[inStates()]] : []),
    ...createdWith(query, bind).map((attribute) =>
      areEnded ? [`${attribute} AND ${ENDED} AND ${inStates()}`] : [`${attribute} AND ${ENDED}`, NOT_ENDED],
    ),
    ...[created, updated].filter(({ length }) => length > 0).map((times) => [times.join(" AND ")]),
  ];
  return [
    ...conditions.map((set) => set.map((condition) => `runs r WHERE ${owned()} AND ${condition}`)),
    ...(query.artifactType === undefined ? [] : [[`artifacts a WHERE ${isOfType(query.artifactType, bind)}`]]),
  ];
}

/** Returns whether there is any such set. */
export const isCountable = (query: RunListQuery): boolean => formOfCountableRows(query).length > 0;

/** Returns whether the list has one filter, by which all matching runs can be counted. */
export function isOneCountableFilter(query: RunListQuery): boolean {
  const { bounds, filters } = conditionsOf(query, withoutParameters, "walk");
  const rows = formOfCountableRows(query);
  return bounds.length === 0 && filters.length === 1 && rows.flat().some((found) => found.includes(filters[0]!));
}

const isOfType = (artifactType: string, bind: Bind): string =>
  `a.committed_at IS NOT NULL AND a.artifact_type = ${bind(artifactType, "text")}`;

const formOfCountableRows = (query: RunListQuery): string[][] => countableRows(query, withoutParameters, () => "");

/** Binds no parameters, where only the form of the conditions is of interest. */
const withoutParameters: Bind = () => "";

/** Returns the states of listed runs or, for running tasks, of runs in their trees; undefined for all states. */
const statesOf = ({ states, taskStatuses }: RunListQuery): readonly RunState[] | undefined =>
  states.length > 0 ? states : taskStatuses?.flatMap((status) => STATES_OF_TASK[status]);

function otherTableConditions(
  { ancestorRunUid, artifactType, search, runUids, taskStatuses }: RunListQuery,
  bind: Bind,
  use: Use,
  trigrams: readonly string[],
): string[] {
  return [
    ...(ancestorRunUid === undefined ? [] : [`r.uid IN (${descendants(bind(ancestorRunUid, "uuid"))})`]),
    ...(taskStatuses ? taskStatusConditions(taskStatuses, bind, use) : []),
    ...(artifactType === undefined ? [] : [hasRow("artifacts a", "a.run_uid", isOfType(artifactType, bind), use)]),
    ...(search ? searchConditions(search, bind, use, trigrams) : []),
    ...(runUids ? [`r.uid = ANY(${bind(runUids, "uuid[]")})`] : []),
  ];
}

/**
 * Returns the condition that another table has a row for the run. For `walk`, the scalar subquery makes the planner
 * look up each run; for the other uses, `IN` finds the whole set at once.
 */
const hasRow = (table: string, runUid: string, condition: string, use: Use): string =>
  use === "walk"
    ? `(SELECT true FROM ${table} WHERE ${runUid} = r.uid AND ${condition} LIMIT 1) IS TRUE`
    : `r.uid IN (SELECT ${runUid} FROM ${table} WHERE ${condition})`;

const STATES_OF_TASK: Readonly<Record<TaskStatus, readonly RunState[]>> = {
  running: RUN_STATES.filter((state) => !isTerminal(state)),
  complete: ["SUCCEEDED"],
  failed: ["FAILED", "ERROR"],
  blocked: ["BLOCKED"],
  cancelled: ["CANCELLED"],
};

/**
 * Returns the conditions for top-level runs by task status. `running` means that any run of the tree is active; the
 * other statuses are terminal states of the top-level run.
 */
function taskStatusConditions(statuses: readonly TaskStatus[], bind: Bind, use: Use): string[] {
  const ended = statuses.flatMap((status) => STATES_OF_TASK[status]).filter(isTerminal);
  const alternatives = [
    ...(ended.length > 0 ? [`r.state = ANY(${bind(ended, "text[]")})`] : []),
    ...(statuses.includes("running")
      ? [hasRow("runs t", "t.root_run_uid", "t.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')", use)]
      : []),
  ];
  return ["r.parent_run_uid IS NULL", `(${alternatives.join(" OR ")})`];
}

function searchConditions(search: RunSearch, bind: Bind, use: Use, trigrams: readonly string[]): string[] {
  if ("runUid" in search) return [`r.uid = ${bind(search.runUid, "uuid")}`];
  const hasWords = (text: string): string[] => [
    ...suggesting(trigrams, text, bind),
    ...containing(search.words, text, bind),
  ];
  return use === "texts"
    ? hasWords("r.text")
    : [hasRow("run_texts t", "t.run_uid", hasWords("t.text").join(" AND "), use)];
}

/** Returns the statement that selects all descendants of a run, at any depth, without the run itself. */
const descendants = (uid: string): string => `
  WITH RECURSIVE tree AS (
    SELECT c.uid FROM runs c WHERE c.parent_run_uid = ${uid}
    UNION ALL SELECT c.uid FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
  SELECT uid FROM tree`;

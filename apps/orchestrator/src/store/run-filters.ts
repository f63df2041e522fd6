import {
  EMPTY_ENVIRONMENT,
  type RunListQuery,
  type RunPosition,
  type RunSearch,
  type RunSort,
  type TaskStatus,
} from "../domain/run-list.ts";
import { isTerminal, RUN_STATES, type RunState } from "../domain/run.ts";
import type { Bind } from "./binding.ts";
import { containing, suggesting } from "./run-texts.ts";

/** The sort key of a run, as an expression, with the type in which a cursor gives it back. `C` order: the same on every server. */
export const KEYS: Readonly<Record<RunSort, { readonly expression: string; readonly type: string }>> = {
  updated_at: { expression: "r.updated_at", type: "timestamptz" },
  created_at: { expression: "r.created_at", type: "timestamptz" },
  title: { expression: 'lower(r.title) COLLATE "C"', type: "text" },
  agent: { expression: 'r.skill_spec COLLATE "C"', type: "text" },
};

/** The order of a list: over `runs r` within a range of its index, over what was selected from there with its key as `sort_key`, and of the whole. */
export function orderOf({ sortBy, isDescending }: RunListQuery): {
  readonly ofRuns: string;
  readonly ofRange: string;
  readonly ofAll: string;
} {
  const direction = isDescending ? "DESC" : "ASC";
  const ofRange = `sort_key ${direction}, uid ${direction}`;
  // Runs without a skill are last in both directions (fields-runs §6.2); the other keys are never null.
  return {
    ofRuns: `${KEYS[sortBy].expression} ${direction}, r.uid ${direction}`,
    ofRange,
    ofAll: sortBy === "agent" ? `(sort_key IS NULL), ${ofRange}` : ofRange,
  };
}

/** How a condition is used: of one run after the other, or to find all of which it holds, among runs or `TEXTS`. What is not a column is asked differently. */
type Use = "walk" | "set" | "texts";

/** Conditions over `runs r`, or `TEXTS r`: those by which an index begins or ends the order at once, and the others. Texts with the words of `q` are found by `trigrams`. */
export function conditionsOf(
  query: RunListQuery,
  bind: Bind,
  use: Use,
  trigrams: readonly string[] = [],
): { readonly bounds: readonly string[]; readonly others: readonly string[] } {
  const { sortBy, createdAfter, createdBefore, updatedAfter, skillSpec } = query;
  const created = [
    ...(createdAfter ? [`r.created_at > ${bind(createdAfter, "timestamptz")}`] : []),
    ...(createdBefore ? [`r.created_at < ${bind(createdBefore, "timestamptz")}`] : []),
  ];
  const updated = [
    ...(updatedAfter ? [`r.updated_at > ${bind(updatedAfter, "timestamptz")}`] : []),
    // What was made after a time has changed after it.
    ...(createdAfter && sortBy === "updated_at" ? [`r.updated_at > ${bind(createdAfter, "timestamptz")}`] : []),
  ];
  // In the terms of the index of its sort: within one skill that is an order by uid.
  const skill =
    skillSpec === undefined
      ? []
      : [`(r.skill_spec IS NULL) IS FALSE AND r.skill_spec COLLATE "C" = ${bind(skillSpec, "text")}`];
  const others = [
    ...columns(query, bind),
    ...(use === "set" ? endedOrNot(query) : []),
    ...elsewhere(query, bind, use, trigrams),
  ];
  const byOrder: Readonly<Record<RunSort, string[][]>> = {
    created_at: [created, updated, skill],
    updated_at: [updated, created, skill],
    title: [[], created, updated, skill],
    agent: [skill, created, updated],
  };
  const [bounds, ...rest] = byOrder[sortBy];
  return { bounds: bounds!, others: [...rest.flat(), ...others] };
}

/** A run that changed later than this after it was made is found by an index of its own. */
const LATE = "interval '1 day'";

/**
 * Times of creation and of change are close to each other, but for few runs. Where one is bounded from the side at which a walk in the order of the other
 * begins, two walks are made: of the many, from near that bound on, and of the few. Otherwise a walk would pass all that lies between.
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

/** The order of agents is two ranges of its index, one after the other: runs with a skill, and those without. */
export const partsAfter = ({ sortBy }: RunListQuery, after: RunPosition | undefined): number =>
  sortBy === "agent" && after?.key !== null ? 2 : 1;

/** The runs after a position in the range `part` of those: conditions. */
export function continuedBy(
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

function columns(query: RunListQuery, bind: Bind): string[] {
  const { states, factoryUids, factoryOnly, sources, environmentUid, metadata } = query;
  const equal = (column: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`${column} = ${bind(value, "text")}`];
  return [
    ...(states.length > 0 ? [`r.state = ANY(${bind(states, "text[]")})`] : []),
    ...(factoryUids ? [`r.factory_uid = ANY(${bind(factoryUids, "uuid[]")})`] : []),
    ...(factoryOnly ? ["r.factory_uid IS NOT NULL"] : []),
    ...(sources ? [`r.source = ANY(${bind(sources, "text[]")})`] : []),
    ...equal("r.config_name", query.name),
    ...equal("r.model_id", query.modelId),
    ...equal("r.creator_uid", query.creatorUid),
    ...equal("r.executor_uid", query.executorUid),
    ...equal("r.execution_location", query.executionLocation),
    ...equal("r.schedule->>'schedule_id'", query.scheduleUid),
    ...(environmentUid === EMPTY_ENVIRONMENT
      ? ["r.environment_uid IS NULL"]
      : equal("r.environment_uid", environmentUid)),
    ...(metadata ? [`r.metadata @> ${bind(JSON.stringify(metadata), "jsonb")} AND r.metadata <> '{}'`] : []),
  ];
}

const among = (states: readonly RunState[]): string => `r.state IN (${states.map((state) => `'${state}'`).join(", ")})`;
const ENDED = among(RUN_STATES.filter(isTerminal));
const NOT_ENDED = among(RUN_STATES.filter((state) => !isTerminal(state)));

/** The indexes of what a run was made with hold those that have ended (migration 0032); the others are found by their state. Said so, though it holds of every run. */
function endedOrNot({
  states,
  factoryUids,
  factoryOnly,
  sources,
  name,
  modelId,
  creatorUid,
  executorUid,
  scheduleUid,
  environmentUid,
  skillSpec,
  metadata,
}: RunListQuery): string[] {
  const isOfThese = [
    factoryUids,
    factoryOnly,
    sources,
    name,
    modelId,
    creatorUid,
    executorUid,
    scheduleUid,
    environmentUid,
    skillSpec,
    metadata,
  ].some((value) => value !== undefined);
  const ended = states.filter(isTerminal).length;
  if (!isOfThese || (states.length > 0 && ended === 0)) return [];
  return [states.length > 0 && ended === states.length ? ENDED : `(${ENDED} OR ${NOT_ENDED})`];
}

function elsewhere(
  { ancestorRunUid, artifactType, search, runUids, taskStatuses }: RunListQuery,
  bind: Bind,
  use: Use,
  trigrams: readonly string[],
): string[] {
  return [
    ...(ancestorRunUid === undefined ? [] : [`r.uid IN (${descendants(bind(ancestorRunUid, "uuid"))})`]),
    ...(taskStatuses ? ofTasks(taskStatuses, bind, use) : []),
    ...(artifactType === undefined
      ? []
      : [
          some(
            "artifacts a",
            "a.run_uid",
            `a.committed_at IS NOT NULL AND a.artifact_type = ${bind(artifactType, "text")}`,
            use,
          ),
        ]),
    ...(search ? found(search, bind, use, trigrams) : []),
    ...(runUids ? [`r.uid = ANY(${bind(runUids, "uuid[]")})`] : []),
  ];
}

/** A row of another table that belongs to the run. A value that is selected is looked up for each run; a set is found at once. */
const some = (table: string, runUid: string, condition: string, use: Use): string =>
  use === "walk"
    ? `(SELECT true FROM ${table} WHERE ${runUid} = r.uid AND ${condition} LIMIT 1) IS TRUE`
    : `r.uid IN (SELECT ${runUid} FROM ${table} WHERE ${condition})`;

const STATES_OF_TASK: Readonly<Record<Exclude<TaskStatus, "running">, readonly RunState[]>> = {
  complete: ["SUCCEEDED"],
  failed: ["FAILED", "ERROR"],
  blocked: ["BLOCKED"],
  cancelled: ["CANCELLED"],
};

/** Top-level runs by their own end; a task is running while anything of its tree is. */
function ofTasks(statuses: readonly TaskStatus[], bind: Bind, use: Use): string[] {
  const ended = statuses.flatMap((status) => (status === "running" ? [] : STATES_OF_TASK[status]));
  const ways = [
    ...(ended.length > 0 ? [`r.state = ANY(${bind(ended, "text[]")})`] : []),
    ...(statuses.includes("running")
      ? [some("runs t", "t.root_run_uid", "t.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')", use)]
      : []),
  ];
  return ["r.parent_run_uid IS NULL", `(${ways.join(" OR ")})`];
}

function found(search: RunSearch, bind: Bind, use: Use, trigrams: readonly string[]): string[] {
  if ("runUid" in search) return [`r.uid = ${bind(search.runUid, "uuid")}`];
  const hasWords = (text: string): string[] => [
    ...suggesting(trigrams, text, bind),
    ...containing(search.words, text, bind),
  ];
  return use === "texts"
    ? hasWords("r.text")
    : [some("run_texts t", "t.run_uid", hasWords("t.text").join(" AND "), use)];
}

/** Every run below one, at any depth, without itself. */
const descendants = (uid: string): string => `
  WITH RECURSIVE tree AS (
    SELECT c.uid FROM runs c WHERE c.parent_run_uid = ${uid}
    UNION ALL SELECT c.uid FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
  SELECT uid FROM tree`;

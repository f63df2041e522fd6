import { canAs, ownersWith, type Caller, type RunBinding } from "@millwright/caller";
import { isCancelled, type Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { RunListQuery, RunPosition } from "../domain/run-list.ts";
import type { Owner, Run } from "../domain/run.ts";
import { binding, type Bind } from "../../storage/store/binding.ts";
import {
  conditionsAfter,
  conditionsOf,
  countableRows,
  halvesOf,
  isCountable,
  isOneCountableFilter,
  KEYS,
  orderOf,
  partsAfter,
} from "./run-filters.ts";
import { LISTED_RUN_COLUMNS, toRun, type RunRow } from "./run-fields.ts";
import { isOfTexts, sampleTexts, similarTexts, TEXTS, wordsOf, type Sample } from "./run-texts.ts";

export type ListedRun = { readonly run: Run; readonly position: RunPosition };

type ListedRow = RunRow & {
  readonly sort_key: Date | string | null;
  readonly as_of: Date;
  readonly matches: boolean | null;
  readonly is_end: boolean;
};

/**
 * Maximum number of runs that a walk along a sort order reads, for a page of one run; it grows with the square root of
 * the page size. Runs of about the same time are stored side by side (`near`). Reading their texts (`texts`), the next
 * run by title or skill, or another table for each run (`far`) is slower. In a text search ordered by title or skill
 * (`apart`), sorting all matches takes little longer than a walk.
 */
const STEPS = { near: 2500, texts: 1800, far: 1200, apart: 400 } as const;

/**
 * Shares of these steps that walks read: the first walk `first` if matching runs can be counted in indexes, else
 * `whole`; the second walk `longest` if it is expected to fill the page, else `whole`.
 */
const SHARES = { first: 1 / 20, whole: 1, longest: 3 } as const;

/**
 * Maximum number of matching runs that are found and sorted instead of a second walk: `perShare` for each share of
 * steps that is expected to fill the page, and never more than `max`. Finding and sorting 5,000 runs takes as long as a
 * whole walk.
 */
const SORTED = { perShare: 5000, max: 10_000 } as const;

/**
 * Number of runs with the words of `q` that are found and sorted in about the time of a walk: `near` if another table
 * must be read, `apart` if `run_texts` suffices.
 */
const FEW = { near: 2500, apart: 15_000 } as const;

/**
 * Returns a page of at most `limit` runs that the caller may see, after a position. Ties are broken by uid.
 *
 * Reads a limited number of runs along the index of the sort order (a walk). If they do not fill the page, either finds
 * all matching runs by the indexes of the filters and sorts them, or walks further, whichever is expected to be faster,
 * and sorts if that does not fill the page either. Without a walk if few texts have the searched words.
 *
 * Errors: list_too_slow (unavailable, not retryable) if the last statement was cancelled, because its filters match too
 * few of too many runs.
 */
export async function listRuns(
  sql: Sql,
  caller: Caller,
  query: RunListQuery,
  after: RunPosition | undefined,
  limit: number,
): Promise<ListedRun[]> {
  const words = wordsOf(query);
  const sample = words.length > 0 ? await inTime(sampleTexts(sql, words)) : undefined;
  const request: ListRequest = {
    owners: ownersInView(caller, query),
    run: caller.run,
    query,
    after,
    limit,
    sample,
  };
  const select = async <R>(statement: Statement): Promise<R[]> => {
    const { params, bind } = binding();
    return (await sql.query<R>(statement(request, bind), params)).rows;
  };
  const isSmall =
    query.runUids !== undefined ||
    (caller.run && !caller.run.factoryUid) ||
    query.ancestorRunUid !== undefined ||
    query.conversationUid !== undefined ||
    (query.search && "runUid" in query.search);
  const isSorted = isSmall || (sample && hasFewMatches(query, sample));
  const walked = isSorted ? undefined : await unlessCancelled(readByWalks(request, select));
  const rows = walked ?? (await inTime(select<ListedRow>(sortStatement)));
  // Stored times are rounded to milliseconds, the clock is not: one millisecond more covers every row that this page
  // could see.
  const asOf = after?.asOf ?? new Date((rows.at(-1)?.as_of.getTime() ?? 0) + 1);
  return rows.map((row) => ({ run: toRun(row), position: { asOf, key: keyText(row.sort_key), uid: row.uid } }));
}

/**
 * Returns runs that the caller may see and whose texts have words similar to those of the search: the newest of those
 * that the index finds. Returns none if the statement is cancelled, because the exact search has already succeeded.
 */
export async function findSimilarRuns(sql: Sql, caller: Caller, query: RunListQuery): Promise<string[]> {
  const found = similarTexts(
    sql,
    ownersInView(caller, query).map(({ uid }) => uid),
    wordsOf(query),
  );
  return (await unlessCancelled(found)) ?? [];
}

type ListRequest = {
  readonly owners: readonly Owner[];
  readonly run: RunBinding | undefined;
  readonly query: RunListQuery;
  readonly after: RunPosition | undefined;
  readonly limit: number;
  readonly sample: Sample | undefined;
};
type Statement = (request: ListRequest, bind: Bind) => string;
type Select = <R>(statement: Statement) => Promise<R[]>;

/** Returns the page, or undefined if finding and sorting all matching runs is faster. */
async function readByWalks(request: ListRequest, select: Select): Promise<ListedRow[] | undefined> {
  const { query, limit, sample } = request;
  const canCount = isCountable(query);
  const share = SHARES[canCount ? "first" : "whole"];
  const first = await walk(request, select, share);
  if (first.isPage) return first.rows;
  const expectedShare = (share * limit) / first.rows.length; // infinite without a match
  const maxSorted = Math.min(SORTED.max, Math.ceil(SORTED.perShare * expectedShare));
  if (sample && sample.count <= maxSorted) return undefined;
  if (canCount && (await areAtMost(maxSorted, request, select))) return undefined;
  // If there are other conditions, many runs may meet the one that was counted, but few all of them.
  const isLikely = expectedShare <= SHARES.longest || (!request.run && isOneCountableFilter(query));
  if (!isLikely && share === SHARES.whole) return undefined;
  const second = await walk(request, select, SHARES[isLikely ? "longest" : "whole"]);
  return second.isPage ? second.rows : undefined;
}

/**
 * Returns the matching runs within a share of the steps. They are the page (`isPage`) if the walk reached the last run
 * of the page or the end of all runs.
 */
async function walk(
  { query, after, limit }: ListRequest,
  select: Select,
  share: number,
): Promise<{ readonly rows: ListedRow[]; readonly isPage: boolean }> {
  const found: ListedRow[] = [];
  for (let part = 0; part < partsAfter(query, after) && found.length < limit; part++) {
    const wanted = limit - found.length;
    const rows = await select<ListedRow>((request, bind) => walkStatement(request, bind, part, wanted, share));
    // Runs beyond the end of a walk are unknown.
    const end = rows.findIndex((row) => row.is_end);
    const isPage = end === -1 || (end === wanted - 1 && rows[end]!.matches === true);
    found.push(...(isPage ? rows : rows.slice(0, end + 1).filter(({ matches }) => matches)));
    if (!isPage) return { rows: found, isPage };
  }
  return { rows: found, isPage: true };
}

/** Returns whether indexes show that at most `max` runs match. */
async function areAtMost(max: number, { owners, query }: ListRequest, select: Select): Promise<boolean> {
  const [row] = await select<{ are_few: boolean }>((_, bind) => {
    const uids = owners.map(({ uid }) => uid);
    const owned = (): string => `r.owner_uid = ANY(${bind(uids, "uuid[]")})`;
    const limit = bind(max + 1, "integer");
    const counts = countableRows(query, bind, owned).map((set) =>
      set.map((rows) => `(SELECT count(*) FROM (SELECT FROM ${rows} LIMIT ${limit}) counted)`).join(" + "),
    );
    return `SELECT least(${counts.join(", ")}) < ${limit} AS are_few`;
  });
  return row!.are_few;
}

function walkStatement(
  { owners, run, query, after, limit }: ListRequest,
  bind: Bind,
  part: number,
  wanted: number,
  share: number,
): string {
  const order = orderOf(query);
  const { bounds, filters: queryFilters } = conditionsOf(query, bind, "walk");
  const filters = [...queryFilters, ...boundTo(run, bind)];
  const limitClause = `LIMIT ${bind(wanted, "integer")}`;
  const steps = bind(filters.length === 0 ? limit : stepsFor(query, owners, limit, share), "integer");
  const range = conditionsAfter(query, after, bind, part);
  const walks = halvesOf(query, bind).map(
    (half) => `
    (SELECT uid, sort_key, matches, nth = ${steps} AND ${filters.length > 0} AS is_end
       FROM (SELECT *, row_number() OVER (ORDER BY ${order.ofRange}) AS nth
               FROM (SELECT r.uid, ${KEYS[query.sortBy].expression} AS sort_key, ${filters.join(" AND ") || "true"} AS matches FROM runs r
                      WHERE ${["r.owner_uid = o.uid", ...bounds, ...range, ...half].join(" AND ")} ORDER BY ${order.ofRuns} LIMIT ${steps}) seen) numbered
      WHERE matches OR nth = ${steps} ORDER BY ${order.ofRange} ${limitClause})`,
  );
  return `SELECT ${LISTED_RUN_COLUMNS}, p.sort_key, p.matches, p.is_end, clock_timestamp() AS as_of
    FROM (SELECT w.* FROM unnest(${bind(
      owners.map(({ uid }) => uid),
      "uuid[]",
    )}) AS o (uid) CROSS JOIN LATERAL (${walks.join(" UNION ALL ")}) w ORDER BY ${order.ofAll} ${limitClause}) p
    JOIN runs r USING (uid) WHERE ${ownedBy(owners, bind)} ORDER BY ${order.ofAll}`;
}

/** Whether finding and sorting all runs with the searched words is faster than a walk. */
const hasFewMatches = (query: RunListQuery, { count, of }: Sample): boolean =>
  count < FEW[isApart(query) ? "apart" : "near"] && count < of / 25;

/**
 * Whether the list is a text search ordered by title or skill. Similar texts are adjacent in these orders, so the
 * distance from them to the next match may be large.
 */
const isApart = (query: RunListQuery): boolean => isOfTexts(query) && query.sortBy !== "created_at";

/**
 * Returns the number of runs that a walk reads per owner. Teams share the total, so that a page costs no more for a
 * caller who is a member of many teams.
 */
function stepsFor(query: RunListQuery, owners: readonly Owner[], limit: number, share: number): number {
  const teams = owners.filter(({ type }) => type === "team").length;
  return Math.max(limit, Math.ceil((share * STEPS[paceOf(query)] * Math.sqrt(limit)) / Math.max(1, teams)));
}

function paceOf(query: RunListQuery): keyof typeof STEPS {
  if (isApart(query)) return "apart";
  const { sortBy, artifactType, search, taskStatuses } = query;
  if (sortBy === "title" || sortBy === "agent" || artifactType !== undefined || taskStatuses?.includes("running"))
    return "far";
  return search === undefined ? "near" : "texts";
}

function sortStatement({ owners, run, query, after, limit, sample }: ListRequest, bind: Bind): string {
  const order = orderOf(query);
  const inTexts = run === undefined && isOfTexts(query); // `run_texts` has no columns of the tree
  const { bounds, filters } = conditionsOf(query, bind, inTexts ? "texts" : "set", sample?.trigrams);
  const ranges = Array.from(
    { length: partsAfter(query, after) },
    (_, part) => `(${conditionsAfter(query, after, bind, part).join(" AND ") || "true"})`,
  );
  const uids = bind(
    owners.map(({ uid }) => uid),
    "uuid[]",
  );
  // OFFSET 0 is an optimization fence: the order and the limit do not influence how matching runs are found.
  return `SELECT ${LISTED_RUN_COLUMNS}, p.sort_key, clock_timestamp() AS as_of
    FROM (SELECT m.* FROM (SELECT r.uid, ${KEYS[query.sortBy].expression} AS sort_key FROM ${inTexts ? TEXTS : "runs"} r
                            WHERE ${[`r.owner_uid = ANY(${uids})`, `(${ranges.join(" OR ")})`, ...bounds, ...filters, ...boundTo(run, bind)].join(" AND ")} OFFSET 0) m
           ORDER BY ${order.ofAll} LIMIT ${bind(limit, "integer")}) p
    JOIN runs r USING (uid) WHERE ${ownedBy(owners, bind)} ORDER BY ${order.ofAll}`;
}

/** Returns the conditions of a run token's binding (`canSee` in run-visibility.ts states the same rule). */
function boundTo(run: RunBinding | undefined, bind: Bind): string[] {
  if (!run) return [];
  const root = bind(run.rootRunUid, "uuid");
  // Written with the expressions of the indexes.
  const ofTree = `r.uid = ${root} OR (r.root_run_uid = ${root} AND r.parent_run_uid IS NOT NULL)`;
  return [`(${run.factoryUid ? `${ofTree} OR r.factory_uid = ${bind(run.factoryUid, "uuid")}` : ofTree})`];
}

/**
 * Returns the condition that one of these owners owns a run. The indexes contain owners by uid only, which suffices to
 * find runs; the result is also checked for the owner's type.
 */
const ownedBy = (owners: readonly Owner[], bind: Bind): string =>
  `r.owner_type || r.owner_uid = ANY(${bind(
    owners.map(({ type, uid }) => type + uid),
    "text[]",
  )})`;

async function unlessCancelled<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (isCancelled(error)) return undefined;
    throw error;
  }
}

async function inTime<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (!isCancelled(error)) throw error;
    throw new DomainError({
      kind: "unavailable",
      reason: "list_too_slow",
      retryable: false,
      cause: error,
      message: "The list took longer than 2 seconds. Remove a filter, or add created_after.",
    });
  }
}

/**
 * Returns the owners whose runs the list may show. A filter by factory reveals what belongs to a factory, so it
 * additionally requires `factory.view`.
 */
const ownersInView = (caller: Caller, { teamUid, factoryUids, factoryOnly }: RunListQuery): Owner[] =>
  ownersWith(caller, "run.view", teamUid).filter(
    (owner) => (factoryUids === undefined && !factoryOnly) || canAs(caller, owner, "factory.view"),
  );

const keyText = (key: Date | string | null): string | null => (key instanceof Date ? key.toISOString() : key);

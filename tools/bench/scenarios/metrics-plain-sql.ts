/** Returns the statement for a range, per day or for the range as a whole. Parameters: factory, start, end. */
export type PlainSql = (isByDay: boolean) => string;

type Query = {
  /** The time by which facts belong to the range and its days. */
  readonly at: string;
  readonly from: string;
  readonly values: string;
  readonly groups?: readonly string[];
  readonly rest?: string;
};

const plainSql =
  ({ at, from, values, groups = [], rest = "" }: Query): PlainSql =>
  (isByDay) => {
    const keys = [...(isByDay ? [`${at}::date`] : []), ...groups];
    const groupBy = keys.length === 0 ? "" : `GROUP BY ${keys.map((_key, index) => index + 1).join(", ")}`;
    return `SELECT ${[...keys, values].join(", ")} FROM ${from} AND ${at} >= $2 AND ${at} < $3 ${groupBy} ${rest}`;
  };

const PULL_REQUESTS =
  "produced_pull_requests p LEFT JOIN pull_requests h USING (team_uid, url_key) WHERE p.factory_uid = $1";
const WITH_COSTS =
  "produced_pull_requests p LEFT JOIN pull_requests h USING (team_uid, url_key) JOIN ledger_entries l ON l.owner_root_uid = p.root_run_uid WHERE p.factory_uid = $1";
const median = (interval: string): string => `percentile_cont(0.5) WITHIN GROUP (ORDER BY ${interval})`;

/**
 * Queries on the facts as a report would execute them. They have no daily sums, and answer a part of what the endpoints
 * answer.
 */
export const PLAIN_SQL: Readonly<Record<string, PlainSql>> = {
  metrics: plainSql({
    at: "h.merged_at",
    from: PULL_REQUESTS,
    values: `count(*), sum(h.additions), sum(h.deletions), ${median("h.opened_at - p.run_created_at")}, ${median("h.merged_at - p.run_created_at")}`,
  }),
  "run breakdown": plainSql({
    at: "created_at",
    from: "run_facts WHERE factory_uid = $1",
    values: "count(*)",
    groups: ["state"],
  }),
  "cost per pull request": plainSql({
    at: "p.created_at",
    from: WITH_COSTS,
    values: "count(DISTINCT p.url_key), sum(l.micros)",
    groups: ["l.component"],
  }),
  "cost breakdown": plainSql({
    at: "occurred_at",
    from: "ledger_entries WHERE factory_uid = $1",
    values: "sum(micros)",
    groups: ["creator_uid", "component"],
  }),
  "costliest pull requests": plainSql({
    at: "p.created_at",
    from: WITH_COSTS,
    values: "sum(l.micros)",
    groups: ["url_key"],
    rest: "ORDER BY 2 DESC LIMIT 20",
  }),
  "cost by size": plainSql({
    at: "p.created_at",
    from: WITH_COSTS,
    values: "count(DISTINCT url_key), sum(l.micros)",
    groups: ["width_bucket(h.additions + h.deletions, ARRAY[100, 500, 1000])"],
  }),
};

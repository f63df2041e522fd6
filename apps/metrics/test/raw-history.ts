import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { LargeHistory } from "./large-history.ts";
import type { FakeRun } from "./run-samples.ts";
import type { World } from "./setup.ts";

/** Prices of compute and the platform, in force from a time on. */
export const PRICE = { vcpuHour: 40_000, gbHour: 5_000, run: 250, from: new Date("2026-09-20T12:00:00Z") };

/** What happened, as plain tables that the service does not know. Answers are computed again from them in SQL. */
const SCHEMA = `
  CREATE SCHEMA raw;
  CREATE TABLE raw.runs (uid uuid PRIMARY KEY, factory uuid, root uuid, parent uuid, at timestamptz, source text, state text,
    agent text, agent_type text, model text, harness text, creator text, follow_ups integer);
  CREATE TABLE raw.spend (owner uuid, component text, at timestamptz, micros bigint);
  CREATE TABLE raw.intervals (owner uuid, at timestamptz, ended_at timestamptz, vcpus numeric, gb numeric);
  CREATE TABLE raw.produced (run uuid, url text, at timestamptz);
  CREATE TABLE raw.reports (url text, event text, action text, at timestamptz, opened_at timestamptz, merged_at timestamptz, state text,
    additions integer, deletions integer, actor text)`;

/** Sums and records, each from the plain tables alone. */
const VIEWS = `
  INSERT INTO raw.spend
  SELECT owner, 'compute', at,
         CASE WHEN at < '${PRICE.from.toISOString()}' THEN 0
              WHEN vcpus > 0 AND gb > 0
              THEN floor(extract(epoch FROM ended_at - at) * (vcpus * ${PRICE.vcpuHour} + gb * ${PRICE.gbHour}) / 3600 + 0.5) END
    FROM raw.intervals;
  INSERT INTO raw.spend
  SELECT uid, 'platform', at, ${PRICE.run} FROM raw.runs WHERE at >= '${PRICE.from.toISOString()}';

  CREATE MATERIALIZED VIEW raw.costs AS
  SELECT root.factory, s.component, s.at, s.micros, root.uid AS root, o.agent, o.model, root.source, root.creator
    FROM raw.spend s
    JOIN raw.runs o ON o.uid = s.owner
    JOIN raw.runs root ON root.uid = o.root;

  CREATE MATERIALIZED VIEW raw.shares AS
  WITH tree AS (SELECT DISTINCT r.factory, r.root, p.url FROM raw.produced p JOIN raw.runs r ON r.uid = p.run),
       part AS (SELECT factory, root, url,
                       count(*) OVER (PARTITION BY root) AS parts,
                       row_number() OVER (PARTITION BY root ORDER BY url COLLATE "C") AS part
                  FROM tree),
       cost AS (SELECT root, component, sum(micros) AS micros FROM raw.costs GROUP BY 1, 2)
  SELECT p.factory, p.url, c.component, div(c.micros, p.parts) + CASE WHEN p.part <= mod(c.micros, p.parts) THEN 1 ELSE 0 END AS micros
    FROM part p
    JOIN cost c USING (root);

  CREATE VIEW raw.hosts AS
  SELECT url,
         min(opened_at) AS opened_at,
         min(merged_at) AS merged_at,
         max(at) AS updated_at,
         CASE WHEN bool_or(merged_at IS NOT NULL) THEN 'merged' WHEN bool_or(state = 'closed') THEN 'closed' ELSE 'open' END AS state,
         (array_agg(additions ORDER BY at DESC) FILTER (WHERE additions IS NOT NULL))[1] AS additions,
         (array_agg(deletions ORDER BY at DESC) FILTER (WHERE deletions IS NOT NULL))[1] AS deletions,
         bool_or(action = 'opened') AS is_complete,
         coalesce(bool_or(actor = 'User' AND action IN ('opened', 'synchronize')), false) AS human_change,
         count(*) FILTER (WHERE actor = 'User') AS human,
         min(at) FILTER (WHERE actor = 'User' AND event = 'pull_request_review') AS reviewed_at
    FROM raw.reports
   GROUP BY url;

  CREATE MATERIALIZED VIEW raw.records AS
  SELECT p.factory, p.url, h.opened_at, h.merged_at, h.state, h.additions, h.deletions, h.reviewed_at,
         coalesce(h.is_complete, false) AS is_complete, h.human_change, h.human + p.follow_ups AS human,
         p.kickoff_at, p.first_seen_at, p.runs,
         coalesce(c.inference, 0) AS inference, coalesce(c.compute, 0) AS compute, coalesce(c.platform, 0) AS platform
    FROM (SELECT r.factory, p.url, min(r.at) AS kickoff_at, min(p.at) AS first_seen_at, count(*) AS runs, sum(r.follow_ups) AS follow_ups
            FROM raw.produced p
            JOIN raw.runs r ON r.uid = p.run
           GROUP BY 1, 2) p
    LEFT JOIN raw.hosts h USING (url)
    LEFT JOIN (SELECT factory, url,
                      sum(micros) FILTER (WHERE component = 'inference') AS inference,
                      sum(micros) FILTER (WHERE component = 'compute') AS compute,
                      sum(micros) FILTER (WHERE component = 'platform') AS platform
                 FROM raw.shares
                GROUP BY 1, 2) c USING (factory, url)`;

const dateOf = (time: Timestamp | undefined): Date => timestampDate(time!);
const keyOf = (url: string): string => url.replace("https://", "");

/** Stores a history as plain tables beside those of the service. */
export async function storeRaw(world: World, { runs, reports }: LargeHistory): Promise<void> {
  const insert = (table: string, rows: readonly object[]) =>
    world.rows(`INSERT INTO raw.${table} SELECT * FROM jsonb_populate_recordset(NULL::raw.${table}, $1::jsonb)`, [
      JSON.stringify(rows),
    ]);
  await world.rows(SCHEMA);
  await insert("runs", runs.map(runRow));
  await insert(
    "spend",
    runs.flatMap((run) =>
      run.modelCalls.map(({ recordedAt, costMicros }) => ({
        owner: run.inferenceOwner!.runUid,
        component: "inference",
        at: dateOf(recordedAt),
        micros: costMicros === undefined ? null : String(costMicros),
      })),
    ),
  );
  await insert(
    "intervals",
    runs.flatMap((run) =>
      run.computeIntervals.map(({ startedAt, endedAt, vcpus, memoryGb }) => ({
        owner: run.uid,
        at: dateOf(startedAt),
        ended_at: dateOf(endedAt),
        vcpus,
        gb: memoryGb,
      })),
    ),
  );
  await insert(
    "produced",
    runs.flatMap((run) =>
      run.pullRequests.map(({ url, createdAt }) => ({ run: run.uid, url: keyOf(url), at: dateOf(createdAt) })),
    ),
  );
  await insert("reports", reports.map(reportRow));
  await world.rows(VIEWS);
}

const runRow = (run: FakeRun) => ({
  uid: run.uid,
  factory: run.costOwner!.factoryUid,
  root: run.rootRunUid,
  parent: run.parentRunUid || null,
  at: dateOf(run.createdAt),
  source: run.source,
  state: run.state,
  agent: run.agentUid,
  agent_type: run.agentType,
  model: run.modelId,
  harness: run.harness,
  creator: run.costOwner!.creatorUid,
  follow_ups: run.personFollowUps,
});

type Item = Record<"html_url" | "created_at" | "updated_at" | "merged_at" | "state", string> &
  Partial<Record<"additions" | "deletions", number>>;

function reportRow({ event, payload }: LargeHistory["reports"][number]) {
  const item = (payload["pull_request"] ?? payload["issue"]) as Item;
  const actor = (payload["sender"] ?? (payload["comment"] as { user: object } | undefined)?.user) as { type: string };
  return {
    url: keyOf(item.html_url),
    event,
    action: payload["action"],
    at: item.updated_at,
    opened_at: item.created_at,
    merged_at: item.merged_at,
    state: item.state,
    additions: item.additions ?? null,
    deletions: item.deletions ?? null,
    actor: actor.type,
  };
}

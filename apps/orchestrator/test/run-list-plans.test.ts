import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { RUN_SORTS, type RunListQuery } from "../src/runs/domain/run-list.ts";
import { findSimilarRuns, listRuns } from "../src/runs/store/run-list-store.ts";
import { aCaller, testPlatform, type TestPlatform } from "./support/platform.ts";

// With this many rows, a full scan is never the cheapest way to read a few of them.
const RUNS = 50_000;
const caller = aCaller();
const both = { ...caller, teams: [...caller.teams, ...aCaller().teams] };
const [OWN, OTHER] = both.teams.map(({ teamUid }) => teamUid);
const [FACTORY, SCHEDULE] = [newUid(), newUid()];
const SKILL = "acme/shop:skills/one/SKILL.md";
let platform: TestPlatform;

/**
 * Inserts runs of which one in a thousand has the rare values. Creation times are a minute apart. One in a hundred of
 * the older runs was updated days after its creation.
 */
beforeAll(async () => {
  platform = await testPlatform();
  const { sql } = platform.database;
  await sql.query(
    `INSERT INTO runs (uid, root_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, title, state, prompt, mode, interactive, source, execution_location,
                       conversation_uid, agent_config, frozen, metadata, factory_uid, environment_uid, config_name, model_id, skill_spec, schedule, created_at, updated_at)
     SELECT u, u, 0, 'team', CASE WHEN n % 5 = 4 THEN $2::uuid ELSE $1::uuid END, 'user', CASE WHEN rare THEN 'rare' ELSE 'c' || n % 50 END, CASE WHEN rare THEN 'rare' WHEN n > 3000 THEN 'former' ELSE 'current' END,
            'Run ' || n % 777, CASE WHEN rare THEN 'BLOCKED' ELSE 'SUCCEEDED' END, CASE WHEN rare THEN 'Find the needle.' ELSE 'Look at part ' || n || ' of the whole.' END, 'normal', false, CASE WHEN rare THEN 'JIRA' ELSE 'API' END, CASE WHEN rare THEN 'LOCAL' ELSE 'REMOTE' END,
            gen_random_uuid(), '{}', '{}', CASE WHEN rare THEN '{"k": "rare"}' ELSE '{"k": "v"}' END::jsonb, CASE WHEN rare THEN $3::uuid ELSE gen_random_uuid() END,
            CASE WHEN rare THEN NULL ELSE 'environment' || n % 20 END, CASE WHEN n > 49000 THEN 'bygone' WHEN rare THEN 'rare' ELSE 'a' || n % 20 END, CASE WHEN rare THEN 'rare' ELSE 'm' || n % 5 END,
            CASE WHEN rare THEN $4 WHEN n % 3 = 0 THEN 'acme/shop:skills/s' || n % 7 || '/SKILL.md' END, CASE WHEN rare THEN jsonb_build_object('schedule_id', $5::text) END,
            date_trunc('milliseconds', now()) - n * interval '1 minute',
            date_trunc('milliseconds', now()) - n * interval '1 minute' + CASE WHEN n % 100 = 1 AND n > 5000 THEN interval '3 days' ELSE n % 60 * interval '1 minute' END
       FROM (SELECT n, n % 1000 = 500 AS rare, gen_random_uuid() AS u FROM generate_series(1, ${RUNS}) n) g`,
    [OWN, OTHER, FACTORY, SKILL, SCHEDULE],
  );
  await sql.query(
    "INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, committed_at) SELECT gen_random_uuid(), uid, 'a', 1, CASE state WHEN 'BLOCKED' THEN 'PLAN' ELSE 'FILE' END, '{}', now() FROM runs",
  );
  await sql.query(
    "UPDATE runs SET state = 'QUEUED' WHERE state = 'BLOCKED' AND created_at > now() - interval '10 days'",
  );
  await sql.query("ANALYZE runs, artifacts, run_texts");
});

afterAll(() => platform.close());

const MINUTE = Math.floor(Date.now() / 60_000); // one value for the filters and the oracle
const ago = (minutes: number): Date => new Date((MINUTE - minutes) * 60_000);
const FILTERS: Readonly<Record<string, Partial<RunListQuery>>> = {
  none: {},
  state: { states: ["BLOCKED"] },
  created_after: { createdAfter: ago(300) },
  created_before: { createdBefore: ago(40_000) },
  updated_after: { updatedAfter: ago(300) },
  factory_uid: { factoryUids: [FACTORY] },
  name: { name: "rare" },
  model_id: { modelId: "rare" },
  creator: { creatorUid: "rare" },
  executor: { executorUid: "rare" },
  source: { sources: ["JIRA"] },
  execution_location: { executionLocation: "LOCAL" },
  environment_id: { environmentUid: "environment7" },
  "empty environment": { environmentUid: "empty-environment" },
  skill: { skillSpec: SKILL },
  "common skill": { skillSpec: "acme/shop:skills/s3/SKILL.md" },
  schedule_id: { scheduleUid: SCHEDULE },
  artifact_type: { artifactType: "PLAN" },
  task_status: { taskStatuses: ["running"] },
  metadata: { metadata: { k: "rare" } },
  q: { search: { words: ["needle"] } },
  "q that most runs match": { search: { words: ["run", "shop"] } },
  "a value that no run has": { name: "nobody" },
  "creator and a state in which runs have ended": { creatorUid: "rare", states: ["BLOCKED"] },
  "creator and a state in which they have not": { creatorUid: "rare", states: ["QUEUED"] },
  "creator and states of both sorts": { creatorUid: "rare", states: ["QUEUED", "BLOCKED"] },
};
const SORTS = RUN_SORTS.flatMap((sortBy) => [
  { sortBy, isDescending: true },
  { sortBy, isDescending: false },
]);

test.each(Object.entries(FILTERS))(
  "by %s a page is read from indexes in every order, as is the next",
  async (_, filter) => {
    for (const sort of SORTS) {
      const found: string[] = [];
      const explaining: Sql = {
        async query(text, params) {
          const { rows } = await platform.database.searches.query<{ "QUERY PLAN": string }>(`EXPLAIN ${text}`, params);
          found.push(
            ...rows.flatMap((row) => /Seq Scan on (runs|artifacts|run_texts)\b/.exec(row["QUERY PLAN"])?.[1] ?? []),
          );
          return platform.database.searches.query(text, params);
        },
      };
      const query = { states: [], ...sort, ...filter };
      const page = await listRuns(explaining, caller, query, undefined, 10);
      if (page.length === 10) await listRuns(explaining, caller, query, page.at(-1)!.position, 10);
      expect([sort, found]).toEqual([sort, []]);
    }
  },
);

/** Returns how many runs are read for the first page, which must be full, besides index entries that are counted. */
async function readFor(query: RunListQuery): Promise<number> {
  let read = 0;
  const counting: Sql = {
    async query(text, params) {
      const { rows } = await platform.database.searches.query<{ "QUERY PLAN": { Plan: PlanNode }[] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        params,
      );
      if (!text.includes("count(*)")) read += runsRead(rows[0]!["QUERY PLAN"][0]!.Plan);
      return platform.database.searches.query(text, params);
    },
  };
  expect(await listRuns(counting, caller, query, undefined, 10)).toHaveLength(10);
  return read;
}

test("a page reads no more runs than a walk and the matches, if only the oldest runs match and the newest are requested", async () => {
  // A walk reads at most 2500 √10 runs, and 800 of 40,000 runs match.
  for (const sort of SORTS) expect(await readFor({ states: [], ...sort, name: "bygone" })).toBeLessThan(10_000);
});

test.each(
  ["creator", "executor", "name", "model_id", "factory_uid", "source", "skill", "schedule_id", "state", "task_status"]
    .map((filter) => [filter, FILTERS[filter]!] as const)
    .concat([["creator and state", { creatorUid: "rare", states: ["BLOCKED"] }]]),
)("a %s that few runs have is found without a whole walk in every order", async (_, filter) => {
  // A whole walk reads 2500 √10 runs. Fifty of 50,000 runs match, and some are active.
  for (const sort of SORTS)
    expect([sort, (await readFor({ states: [], ...sort, ...filter })) < 2500]).toEqual([sort, true]);
});

test("an executor whose many runs begin after the first walk is found by the second", async () => {
  // 37,000 of 40,000 runs match, and none of the newest 2,400.
  const sort = { sortBy: "created_at", isDescending: true } as const;
  expect(await readFor({ states: [], ...sort, executorUid: "former" })).toBeLessThan(10_000);
});

test("rare metadata is found without the longest walk if most runs meet the other filters", async () => {
  // A whole walk reads 2500 √10 runs.
  const filters = { states: ["SUCCEEDED", "BLOCKED", "QUEUED"] as const, createdAfter: ago(50_000) };
  for (const sort of SORTS.filter(({ sortBy }) => sortBy.endsWith("_at")))
    expect([sort, (await readFor({ ...sort, ...filters, metadata: { k: "rare" } })) < 10_000]).toEqual([sort, true]);
});

test.each([
  ["a walk", "is_end", 2],
  ["a count", "count(*)", 3],
])("if %s is cancelled, all matching runs are sorted", async (_, part, expected) => {
  let statements = 0;
  const cancelling: Sql = {
    async query(text, params) {
      statements++;
      if (text.includes(part))
        await platform.database.searches.query("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(10)");
      return platform.database.searches.query(text, params);
    },
  };
  const query: RunListQuery = { states: [], sortBy: "created_at", isDescending: true, creatorUid: "rare" };
  expect([(await listRuns(cancelling, caller, query, undefined, 10)).length, statements]).toEqual([10, expected]);
});

test.each<[string, Partial<RunListQuery>]>([
  ["alone", {}],
  ["and a state", { states: ["SUCCEEDED", "BLOCKED"] }],
  ["and a creator", { creatorUid: "rare" }],
])("words that few runs have, %s, are found without a walk in every order", async (_, filter) => {
  // Fifty of 50,000 runs match. They are read in two tables, in addition to the runs of the page.
  for (const sort of SORTS)
    expect([sort, (await readFor({ states: [], ...sort, search: { words: ["needle"] }, ...filter })) < 300]).toEqual([
      sort,
      true,
    ]);
});

test("words with typos are found by the text index, for callers who may read the runs", async () => {
  const { searches } = platform.database;
  const { rows } = await searches.query<{ body: string }>(
    "SELECT prosrc AS body FROM pg_proc WHERE proname = 'similar_run_texts'",
  );
  const body = rows[0]!.body
    .replace("owners", `'{${OWN}}'::uuid[]`)
    .replace("word", "'neadle'")
    .replace("max_rows", "500");
  const plan = (await searches.query<{ "QUERY PLAN": string }>(`EXPLAIN ${body}`)).rows
    .map((row) => row["QUERY PLAN"])
    .join("\n");
  expect([plan.includes("run_texts_trigrams"), plan.includes("Seq Scan")]).toEqual([true, false]);
  const query: RunListQuery = { states: [], sortBy: "updated_at", isDescending: true, search: { words: ["neadle"] } };
  // All runs with the needle belong to this team.
  expect(await findSimilarRuns(searches, caller, query)).toHaveLength(50);
  expect(await findSimilarRuns(searches, aCaller(), query)).toEqual([]);
});

type PlanNode = {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanNode[];
};

const runsRead = (node: PlanNode): number =>
  (node["Relation Name"] === "runs"
    ? (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"]
    : 0) + (node.Plans ?? []).reduce((sum, plan) => sum + runsRead(plan), 0);

type Row = {
  uid: string;
  title: string;
  skill_spec: string | null;
  created_at: Date;
  updated_at: Date;
  state: string;
  creator_uid: string;
  prompt: string;
  owner_uid: string;
  environment_uid: string | null;
  execution_location: string;
  schedule: object | null;
  model_id: string;
};
const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);
let inOrder: { sort: (typeof SORTS)[number]; rows: Row[] }[] | undefined;

/** Returns every run, in each of the orders, without SQL. */
async function runsInOrder(): Promise<NonNullable<typeof inOrder>> {
  if (inOrder) return inOrder;
  const { rows } = await platform.database.sql.query<Row>(
    "SELECT uid, owner_uid, lower(title) AS title, skill_spec, created_at, updated_at, state, creator_uid, prompt, environment_uid, execution_location, schedule, model_id FROM runs",
  );
  inOrder = SORTS.map((sort) => {
    const keyOf = (row: Row): string | number =>
      sort.sortBy === "title"
        ? row.title
        : sort.sortBy === "agent"
          ? (row.skill_spec ?? "")
          : row[sort.sortBy].getTime();
    const last = (row: Row): number => Number(sort.sortBy === "agent" && row.skill_spec === null);
    const sign = sort.isDescending ? -1 : 1;
    return {
      sort,
      rows: rows.toSorted((a, b) => last(a) - last(b) || sign * (compare(keyOf(a), keyOf(b)) || compare(a.uid, b.uid))),
    };
  });
  return inOrder;
}

const contains =
  (...words: string[]) =>
  (row: Row): boolean =>
    words.every((word) => [row.title, row.skill_spec ?? "", row.prompt].join("\n").toLowerCase().includes(word));

// An oracle determines the expected runs. The walks reach the end of a page, reach the end of all runs, or are given
// up.
test.each<[string, Partial<RunListQuery>, (row: Row) => boolean]>([
  ["nothing", {}, () => true],
  ["created_before", { createdBefore: ago(40_000) }, (row) => row.created_at < ago(40_000)],
  ["created_after", { createdAfter: ago(9_000) }, (row) => row.created_at > ago(9_000)],
  ["updated_after", { updatedAfter: ago(9_000) }, (row) => row.updated_at > ago(9_000)],
  [
    "all three",
    { createdAfter: ago(30_000), createdBefore: ago(20_000), updatedAfter: ago(24_000) },
    (row) => row.created_at > ago(30_000) && row.created_at < ago(20_000) && row.updated_at > ago(24_000),
  ],
  ["skill", { skillSpec: "acme/shop:skills/s3/SKILL.md" }, (row) => row.skill_spec === "acme/shop:skills/s3/SKILL.md"],
  ["a common creator", { creatorUid: "c7" }, (row) => row.creator_uid === "c7"],
  ["a rare creator", { creatorUid: "rare" }, (row) => row.creator_uid === "rare"],
  [
    "a rare creator and a state in which runs have ended",
    { creatorUid: "rare", states: ["BLOCKED"] },
    (row) => row.creator_uid === "rare" && row.state === "BLOCKED",
  ],
  [
    "a rare creator and a state in which they have not",
    { creatorUid: "rare", states: ["QUEUED"] },
    (row) => row.creator_uid === "rare" && row.state === "QUEUED",
  ],
  [
    "a rare creator and states of both sorts",
    { creatorUid: "rare", states: ["QUEUED", "BLOCKED"] },
    (row) => row.creator_uid === "rare",
  ],
  ["rare metadata", { metadata: { k: "rare" } }, (row) => row.creator_uid === "rare"],
  ["an unknown creator", { creatorUid: "nobody" }, () => false],
  [
    "a common model and an environment",
    { modelId: "m2", environmentUid: "environment7" },
    (row) => row.model_id === "m2" && row.environment_uid === "environment7",
  ],
  ["execution_location", { executionLocation: "LOCAL" }, (row) => row.execution_location === "LOCAL"],
  ["no environment", { environmentUid: "empty-environment" }, (row) => row.environment_uid === null],
  ["schedule_id", { scheduleUid: SCHEDULE }, (row) => row.schedule !== null],
  ["a common artifact", { artifactType: "FILE" }, (row) => !row.prompt.includes("needle")],
  ["a rare artifact", { artifactType: "PLAN" }, (row) => row.prompt.includes("needle")],
  ["a common word", { search: { words: ["whole"] } }, (row) => row.prompt.includes("whole")],
  ["a rare word", { search: { words: ["needle"] } }, (row) => row.prompt.includes("needle")],
  ["a word of two letters", { search: { words: ["77"] } }, contains("77")],
  ["words that some runs have", { search: { words: ["part", "777"] } }, contains("part", "777")],
  ["a word that no run has", { search: { words: ["77", "xylophone"] } }, () => false],
  ["a word without trigrams", { search: { words: ["8:"] } }, () => false],
  ["words of titles and skills", { search: { words: ["776", "s/s3"] } }, contains("776", "s/s3")],
  [
    "a common word and a creator",
    { search: { words: ["whole"] }, creatorUid: "c7" },
    (row) => contains("whole")(row) && row.creator_uid === "c7",
  ],
  [
    "a word and a model",
    { search: { words: ["777"] }, modelId: "m2" },
    (row) => contains("777")(row) && row.model_id === "m2",
  ],
  [
    "a word and a state",
    { search: { words: ["needle"] }, states: ["QUEUED"] },
    (row) => contains("needle")(row) && row.state === "QUEUED",
  ],
  [
    "a word and a skill",
    { search: { words: ["77"] }, skillSpec: "acme/shop:skills/s3/SKILL.md" },
    (row) => contains("77")(row) && row.skill_spec === "acme/shop:skills/s3/SKILL.md",
  ],
  [
    "a word and times of creation",
    { search: { words: ["777"] }, createdAfter: ago(30_000), createdBefore: ago(7_000) },
    (row) => contains("777")(row) && row.created_at > ago(30_000) && row.created_at < ago(7_000),
  ],
  [
    "a word and a time of change",
    { search: { words: ["777"] }, updatedAfter: ago(30_000) },
    (row) => contains("777")(row) && row.updated_at > ago(30_000),
  ],
  ["running tasks", { taskStatuses: ["running"] }, (row) => row.state === "QUEUED"],
  ["running or complete tasks", { taskStatuses: ["running", "complete"] }, (row) => row.state !== "BLOCKED"],
])("by %s the pages of one team, and of two, are the expected ones in every order", async (_, filter, matches) => {
  for (const { sort, rows } of await runsInOrder()) {
    const matching = rows.filter(matches);
    for (const [who, expected] of [
      [caller, matching.filter((row) => row.owner_uid === OWN)],
      [both, matching],
    ] as const) {
      const query = { states: [], ...filter, ...sort };
      const first = await listRuns(platform.database.searches, who, query, undefined, 30);
      const second =
        first.length < 30 ? [] : await listRuns(platform.database.searches, who, query, first.at(-1)?.position, 30);
      expect([sort, ...[...first, ...second].map(({ run }) => run.uid)]).toEqual([
        sort,
        ...expected.slice(0, 60).map(({ uid }) => uid),
      ]);
    }
  }
});

test("a list that takes longer than two seconds is cancelled with an error; the next one succeeds", async () => {
  const { searches } = platform.database;
  const slow: Sql = {
    query: (text, params) => searches.query(text.replace("SELECT ", "SELECT pg_sleep(60), "), params),
  };
  const query = { states: [], sortBy: "updated_at", isDescending: true } as const;
  await expect(listRuns(slow, caller, query, undefined, 1)).rejects.toMatchObject({
    kind: "unavailable",
    reason: "list_too_slow",
    retryable: false,
  });
  expect(await listRuns(searches, caller, query, undefined, 1)).toHaveLength(1);
});

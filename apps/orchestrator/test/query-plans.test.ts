import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { unreportedChildren } from "../src/runs/store/children-store.ts";
import { readLoad } from "../src/leases/store/load-store.ts";
import { liveDescendants, lockRuns } from "../src/runs/store/locked-runs.ts";
import { inputsOf, unassignMessages } from "../src/runs/store/message-store.ts";
import {
  conversationsByUrl,
  findByReference,
  listChildren,
  listOfConversation,
  listTreeUids,
} from "../src/runs/store/conversation-run-store.ts";
import { listRuns, type ListedRun } from "../src/runs/store/run-list-store.ts";
import { pullRequestStore } from "../src/artifacts/store/pull-request-store.ts";
import { readQueuedLanes } from "../src/leases/store/queue-status-store.ts";
import { countLiveRuns, findNewestOfConversation, findRun, liveRunsOfAgent } from "../src/runs/store/run-store.ts";
import { scoredRunStore } from "../src/evidence/store/scored-run-store.ts";
import { skillStore } from "../src/catalog/store/skill-store.ts";
import { environmentUse } from "../src/runs/store/run-view-store.ts";
import { RUN_SORTS, type RunSort } from "../src/runs/domain/run-list.ts";
import type { Run } from "../src/runs/domain/run.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

// With this many rows, a full scan is never the cheapest way to read a few of them.
const RUNS = 20_000;
const caller = aCaller();
let platform: TestPlatform;
let run: Run;

beforeAll(async () => {
  platform = await testPlatform();
  run = await platform.run(caller);
  const { sql } = platform.database;
  await sql.query(
    `INSERT INTO runs (uid, root_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, title, state, prompt, mode, interactive,
                       source, conversation_uid, agent_config, frozen, created_at, updated_at, environment_uid)
     SELECT u, u, 0, 'team', CASE WHEN n % 2 = 0 THEN $1::uuid ELSE $2::uuid END, 'user', 'u', 'u', 'Run ' || n, 'SUCCEEDED', 'p', 'normal', false,
            'API', gen_random_uuid(), '{}', '{}', now() - n * interval '1 minute', now() - n * interval '1 minute', 'environment' || n % 4
       FROM (SELECT n, gen_random_uuid() AS u FROM generate_series(1, ${RUNS}) n) g`,
    [teamOf(caller), newUid()],
  );
  await sql.query("UPDATE runs SET parent_run_uid = $1 WHERE uid IN (SELECT uid FROM runs WHERE uid <> $1 LIMIT 50)", [
    run.uid,
  ]);
  await sql.query(
    "INSERT INTO executions (run_uid, seq, state, lane_id, depth, outcome) SELECT r.uid, 1, 'ENDED', l.id, 0, 'DONE' FROM runs r, lanes l WHERE r.uid <> $1",
    [run.uid],
  );
  await sql.query(
    `INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid, execution_id, taken_as)
     SELECT gen_random_uuid(), x.run_uid, 1, 'prompt', 't', 'normal', 'user', 'u', x.id, 'input' FROM executions x WHERE x.run_uid <> $1`,
    [run.uid],
  );
  await sql.query("ANALYZE runs, executions, messages");
});

afterAll(() => platform.close());

/** Returns the large tables that the statements of `f` scan sequentially. */
const scanned = async (f: (sql: Sql) => Promise<unknown>): Promise<string[]> =>
  (await planned(f)).flatMap((line) => /Seq Scan on (runs|executions|messages)\b/.exec(line)?.[1] ?? []);

async function planned(f: (sql: Sql) => Promise<unknown>): Promise<string[]> {
  const found: string[] = [];
  const { sql } = platform.database;
  const explaining: Sql = {
    async query(text, params) {
      const { rows } = await sql.query<{ "QUERY PLAN": string }>(`EXPLAIN ${text}`, params);
      found.push(...rows.map((row) => row["QUERY PLAN"]));
      return sql.query(text, params);
    },
  };
  await f(explaining);
  return found;
}

const listed = (sql: Sql, sortBy: RunSort, isDescending: boolean, after?: ListedRun) =>
  listRuns(sql, caller, { states: [], sortBy, isDescending }, after?.position, 20);

const SORTS = RUN_SORTS.flatMap(
  (sortBy) =>
    [
      [sortBy, "desc"],
      [sortBy, "asc"],
    ] as const,
);
test.each(SORTS)("a page of runs by %s %s is read from an index, as is the next", async (sortBy, order) => {
  const isDescending = order === "desc";
  expect(
    await scanned(async (sql) => listed(sql, sortBy, isDescending, (await listed(sql, sortBy, isDescending)).at(-1))),
  ).toEqual([]);
});

test.each<[string, (sql: Sql) => Promise<unknown>]>([
  ["a run", (sql) => findRun(sql, run.uid)],
  ["what scoring reads of runs", (sql) => scoredRunStore.list(sql, [run.uid, newUid()])],
  ["the agents above a run", (sql) => scoredRunStore.ancestorAgents(sql, [run.uid])],
  ["the tree below a run", (sql) => listTreeUids(sql, caller, [run.uid])],
  ["the live tree below a run", (sql) => liveDescendants(sql, run.uid)],
  ["children", (sql) => listChildren(sql, caller, [run.uid], 100)],
  ["children to report", (sql) => unreportedChildren(sql, run.uid)],
  ["a conversation", (sql) => listOfConversation(sql, caller, run.conversationUid)],
  ["its newest run", (sql) => findNewestOfConversation(sql, caller, run.conversationUid)],
  ["the first reporter of a reference", (sql) => findByReference(sql, caller, "https://t.example/1")],
  ["the conversations about a URL", (sql) => conversationsByUrl(sql, teamOf(caller), "https://t.example/1")],
  ["the use of environments", (sql) => environmentUse(sql, caller, ["environment1", "environment2"])],
  [
    "the newest run of skills",
    (sql) => skillStore.lastRuns(sql, [run.owner], ["o/r:skills/x/SKILL.md", `factory/${run.uid}:skills/x/SKILL.md`]),
  ],
  ["the pull requests of a tree", (sql) => pullRequestStore.urlsOfTree(sql, run.uid)],
  ["what is alive of a factory", (sql) => countLiveRuns(sql, run.uid)],
  ["what is alive of an agent", (sql) => liveRunsOfAgent(sql, run.uid)],
  ["a run to be locked", (sql) => lockRuns(sql, [run.uid])],
  ["what an execution was given", (sql) => inputsOf(sql, run.uid, 7)],
  ["what a lost attempt was given", (sql) => unassignMessages(sql, run.uid, 7)],
  ["the load, for metrics", (sql) => readLoad(sql, 60_000)],
  ["the queue, for metrics", (sql) => readQueuedLanes(sql, 60_000)],
])("%s is found by an index", async (_, find) => {
  expect(await scanned(find)).toEqual([]);
});

test("tickets are found by their addresses, without reading all of a team's tickets", async () => {
  expect((await planned((sql) => conversationsByUrl(sql, teamOf(caller), "https://t.example/1"))).join("\n")).toMatch(
    /Scan (on|using) runs_by_ticket\b/,
  );
});

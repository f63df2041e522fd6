import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { aRun } from "./support/platform.ts";

let p: CatalogPlatform;
let caller: Caller;
beforeEach(async () => {
  p = await catalogPlatform();
  caller = aCaller();
});
afterEach(() => p.close());

/** Creates runs whose times and titles have many ties: ten runs share each millisecond. */
async function createTied(count: number): Promise<string[]> {
  const created = await p.life.createRuns(
    caller,
    Array.from({ length: count }, () => aRun(caller)),
  );
  const uids = created.map(({ run }) => run.uid);
  await p.database.sql.query(
    `UPDATE runs SET updated_at = t.at, created_at = t.at, title = 'Title ' || t.n / 10 || CASE WHEN t.n % 2 = 0 THEN 'A' ELSE 'a' END,
            skill_spec = CASE WHEN t.n % 3 = 0 THEN NULL ELSE 'o/r:' || t.n / 10 END
       FROM (SELECT uid::uuid, n, timestamptz '2026-01-01Z' + (n / 10) * interval '1 ms' AS at FROM unnest($1::text[]) WITH ORDINALITY AS g (uid, n)) t
      WHERE runs.uid = t.uid`,
    [uids],
  );
  return uids;
}

type Ask = Partial<Omit<orchestrator.ListRunsRequest, "$typeName" | "$unknown" | "pageToken">>;

/** Returns the runs of all pages. Calls `betweenPages` between pages. */
async function walk(ask: Ask, betweenPages: () => Promise<unknown> = async () => {}): Promise<string[]> {
  const uids: string[] = [];
  for (let pageToken = ""; ;) {
    const page = await p.runs.listRuns({ pageSize: 7, ...ask, pageToken }, p.as(caller));
    if (pageToken !== "" && page.runs.length === 0) throw new Error("a cursor led to an empty page");
    uids.push(...page.runs.map(({ uid }) => uid));
    if (page.nextPageToken === "") return uids;
    pageToken = page.nextPageToken;
    await betweenPages();
  }
}

test("a listed run has the cause key of its request", async () => {
  await p.run(caller, { causeKey: "slot-1" });
  await p.run(caller);
  const { runs } = await p.runs.listRuns({ sortBy: "created_at", sortOrder: "asc" }, p.as(caller));
  expect(runs.map(({ causeKey }) => causeKey)).toEqual(["slot-1", undefined]);
});

const SORTS = ["updated_at", "created_at", "title", "agent"].flatMap((sortBy) =>
  ["asc", "desc"].map((sortOrder) => [sortBy, sortOrder] as const),
);

describe("a walk", () => {
  test.each(SORTS)("by %s %s shows tied rows exactly once, in one total order", async (sortBy, sortOrder) => {
    const uids = await createTied(40);
    const walked = await walk({ sortBy, sortOrder });
    expect([...walked].sort()).toEqual([...uids].sort());
    expect(await walk({ sortBy, sortOrder, pageSize: 500 })).toEqual(walked);
  });

  test.each(SORTS)(
    "by %s %s during writes returns unchanged runs exactly once, and none twice",
    async (sortBy, sortOrder) => {
      const uids = await createTied(40);
      const changed = uids.filter((_, n) => n % 4 === 0);
      const walked = await walk({ sortBy, sortOrder }, async () => {
        await p.run(caller);
        await p.database.sql.query(
          "UPDATE runs SET updated_at = clock_timestamp(), state = 'INPROGRESS' WHERE uid = ANY($1::uuid[])",
          [changed],
        );
      });
      expect(new Set(walked).size).toBe(walked.length);
      const unchanged = sortBy === "updated_at" ? uids.filter((uid) => !changed.includes(uid)) : uids;
      expect(walked).toEqual(expect.arrayContaining(unchanged));
    },
  );

  test("by agent returns runs without a skill last in both directions", async () => {
    const uids = await createTied(30);
    const without = (list: string[]) => list.map((uid) => uids.indexOf(uid) + 1).map((n) => n % 3 === 0);
    for (const sortOrder of ["asc", "desc"])
      expect(without(await walk({ sortBy: "agent", sortOrder }))).toEqual([
        ...Array<boolean>(20).fill(false),
        ...Array<boolean>(10).fill(true),
      ]);
  });

  test("that fits into one page has no cursor, also if it ends exactly with the page", async () => {
    await createTied(7);
    expect((await p.runs.listRuns({ pageSize: 7 }, p.as(caller))).nextPageToken).toBe("");
    expect((await p.runs.listRuns({ pageSize: 6 }, p.as(caller))).nextPageToken).not.toBe("");
  });
});

describe("a cursor", () => {
  test("continues with an explicit default sort and another page size, not with another sort or filter", async () => {
    await createTied(10);
    const { nextPageToken: pageToken } = await p.runs.listRuns({ pageSize: 3 }, p.as(caller));
    const next = (ask: Ask) => p.runs.listRuns({ ...ask, pageToken }, p.as(caller));
    expect((await next({ sortBy: "updated_at", sortOrder: "desc", pageSize: 4 })).runs).toHaveLength(4);
    for (const ask of [
      { sortBy: "title" },
      { sortOrder: "asc" },
      { states: ["QUEUED"] },
      { factoryUids: [newUid()] },
      { teamUid: newUid() },
    ]) {
      await expect(next(ask)).rejects.toEqual(domainError({ reason: "invalid_cursor" }));
    }
  });

  test.each(["x", "AAAA", "A".repeat(60)])("that is malformed (%s) is refused", async (pageToken) => {
    await expect(p.runs.listRuns({ pageToken }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "invalid_cursor", kind: "invalid_argument" }),
    );
  });
});

describe("filters", () => {
  test("bound times exclusively", async () => {
    await createTied(40);
    const at = (n: number) => timestampFromDate(new Date(Date.parse("2026-01-01Z") + n));
    const between = await p.runs.listRuns({ createdAfter: at(0), createdBefore: at(3), pageSize: 500 }, p.as(caller));
    expect(between.runs).toHaveLength(20);
    expect((await p.runs.listRuns({ updatedAfter: at(2), pageSize: 500 }, p.as(caller))).runs).toHaveLength(11);
  });

  test("take any of several states, and refuse unknown ones", async () => {
    const [cancelled] = await createTied(3);
    await p.life.cancelRun(caller, { runUid: cancelled!, tree: false });
    expect(await walk({ states: ["CANCELLED", "FAILED"] })).toEqual([cancelled]);
    await expect(walk({ states: ["DONE"] })).rejects.toEqual(domainError({ reason: "invalid_state" }));
    await expect(walk({ sortBy: "uid" })).rejects.toEqual(domainError({ reason: "invalid_sort" }));
  });

  test("an ancestor's strict descendants, at any depth", async () => {
    const root = await p.run(caller);
    const child = await p.run(caller, { parentRunUid: root.uid });
    const grandchild = await p.run(caller, { parentRunUid: child.uid });
    await p.run(caller);
    expect((await walk({ ancestorRunUid: root.uid })).sort()).toEqual([child.uid, grandchild.uid].sort());
    expect(await walk({ ancestorRunUid: child.uid })).toEqual([grandchild.uid]);
    for (const uid of [newUid(), "nonsense"])
      await expect(walk({ ancestorRunUid: uid })).rejects.toEqual(domainError({ reason: "run_not_found" }));
  });

  test("a conversation's runs that the caller may see", async () => {
    const [first, theirs] = [await p.run(caller), await p.run(aCaller())];
    await p.run(caller);
    const ofConversation = ({ conversationUid }: { conversationUid: string }) => walk({ conversationUid });
    expect(await ofConversation(first)).toEqual([first.uid]);
    for (const uid of [theirs.conversationUid, newUid(), "nonsense"])
      expect(await walk({ conversationUid: uid })).toEqual([]);
    await p.database.sql.query("UPDATE runs SET conversation_uid = $1 WHERE uid <> $2", [
      first.conversationUid,
      first.uid,
    ]);
    expect(await ofConversation(first)).toHaveLength(2);
    expect(await ofConversation(first)).not.toContain(theirs.uid);
  });

  test.each<[string, Ask]>([
    ["the name of the configuration", { name: "nightly" }],
    ["a model", { modelId: "other-model" }],
    ["any of several sources", { sources: ["CLI", "SLACK"] }],
    ["an environment", { environmentUid: "environment1" }],
    ["a skill", { skillSpec: "o/r:skills/mend/SKILL.md" }],
    ["a schedule", { scheduleUid: "schedule-1" }],
    ["several filters together", { name: "nightly", sources: ["CLI"], search: "mend" }],
    ["words of title, prompt and skill, in any case and order", { search: "  ROOF leaks\nmend" }],
    ["characters that are wildcards in a pattern, literally", { search: "100%_off" }],
    ["words of other alphabets", { search: "крыша ÜBER" }],
    ["words whose lower case differs letter by letter", { search: "ΟΔΟΣ İSTANBUL" }],
  ])("%s", async (_name, ask) => {
    await p.run(caller, { prompt: "Nothing of the kind: 100 and off" });
    const wanted = await p.run(caller, {
      title: "The Roof",
      prompt: "It leaks, at 100%_off, über Крыша, ΟΔΟΣ İstanbul",
      source: "CLI",
    });
    await p.database.sql.query(
      `UPDATE runs SET config_name = 'nightly', model_id = 'other-model', environment_uid = 'environment1', skill_spec = 'o/r:skills/mend/SKILL.md', schedule = '{"schedule_id": "schedule-1"}' WHERE uid = $1`,
      [wanted.uid],
    );
    await p.database.sql.query(
      "UPDATE run_texts t SET skill_spec = r.skill_spec, text = run_text(r.title, r.skill_spec, r.prompt) FROM runs r WHERE r.uid = t.run_uid",
    );
    expect(await walk(ask)).toEqual([wanted.uid]);
  });

  test("return top-level runs by task status; running while any run of the tree is", async () => {
    const states = ["QUEUED", "SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"] as const;
    const uids = Object.fromEntries(
      await Promise.all(states.map(async (state) => [state, (await p.run(caller)).uid] as const)),
    );
    const child = await p.run(caller, { parentRunUid: uids["SUCCEEDED"]! });
    for (const state of states)
      await p.database.sql.query("UPDATE runs SET state = $2 WHERE uid = $1", [uids[state], state]);
    const of = async (...taskStatuses: string[]) => (await walk({ taskStatuses })).toSorted();
    const are = (...named: (keyof typeof uids)[]) => named.map((state) => uids[state]!).toSorted();
    expect(await of("running")).toEqual(are("QUEUED", "SUCCEEDED"));
    expect(await of("complete")).toEqual(are("SUCCEEDED"));
    expect(await of("failed")).toEqual(are("FAILED", "ERROR"));
    expect(await of("blocked", "cancelled")).toEqual(are("BLOCKED", "CANCELLED"));
    expect(await of("running", "blocked")).toEqual(are("QUEUED", "SUCCEEDED", "BLOCKED"));
    await p.database.sql.query("UPDATE runs SET state = 'FAILED' WHERE uid = $1", [child.uid]);
    expect(await of("running")).toEqual(are("QUEUED"));
    await expect(of("done")).rejects.toEqual(domainError({ reason: "invalid_task_status" }));
  });

  test("match every pair of metadata, the executor, and the execution location", async () => {
    const [both, labelled] = [
      await p.run(caller, { metadata: { a: "1", b: "2" } }),
      await p.run(caller, { metadata: { a: "1" } }),
    ];
    await p.run(caller, { metadata: { a: "2", b: "1" } });
    expect((await walk({ metadata: { a: "1" } })).toSorted()).toEqual([both.uid, labelled.uid].toSorted());
    expect(await walk({ metadata: { a: "1", b: "2" } })).toEqual([both.uid]);
    expect(await walk({ metadata: { b: "" } })).toEqual([]);
    await expect(walk({ metadata: { a: "", b: "", c: "", d: "", e: "", f: "" } })).rejects.toEqual(
      domainError({ reason: "too_many_metadata_pairs" }),
    );
    await p.database.sql.query("UPDATE runs SET execution_location = 'LOCAL', executor_uid = 'robot' WHERE uid = $1", [
      labelled.uid,
    ]);
    expect(await walk({ executionLocation: "LOCAL" })).toEqual([labelled.uid]);
    expect(await walk({ executorUid: "robot" })).toEqual([labelled.uid]);
    expect(await walk({ executionLocation: "REMOTE" })).toHaveLength(2);
    await expect(walk({ executionLocation: "MOON" })).rejects.toEqual(
      domainError({ reason: "invalid_execution_location" }),
    );
  });

  test("match runs without an environment, of one creator, with an artifact of a type", async () => {
    const [bare, foreign, personal] = [
      await p.run(caller),
      await p.run(caller),
      await p.run(caller, { owner: { type: "user", uid: caller.principal.uid } }),
    ];
    await p.database.sql.query(
      "UPDATE runs SET environment_uid = 'e', creator_uid = 'somebody' WHERE uid = ANY($1::uuid[])",
      [[foreign.uid, personal.uid]],
    );
    await p.database.sql.query(
      `INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, committed_at)
       VALUES (gen_random_uuid(), $1, 'a', 1, 'PLAN', '{}', now()), (gen_random_uuid(), $2, 'b', 1, 'PLAN', '{}', NULL), (gen_random_uuid(), $2, 'c', 1, 'FILE', '{}', now())`,
      [bare.uid, foreign.uid],
    );
    expect(await walk({ environmentUid: "empty-environment" })).toEqual([bare.uid]);
    expect((await walk({ creatorUid: "somebody" })).sort()).toEqual([foreign.uid, personal.uid].sort());
    expect(await walk({ creatorUid: caller.principal.uid })).toEqual([bare.uid]);
    expect(await walk({ artifactType: "PLAN" })).toEqual([bare.uid]);
  });

  test("match a run alone by its id or the address of its page", async () => {
    const run = await p.run(caller);
    await p.run(caller, { prompt: `Go on with ${run.uid}.` });
    for (const search of [
      run.uid,
      run.uid.toUpperCase(),
      `https://mill.example/runs/${run.uid}`,
      `https://mill.example/below/runs/${run.uid}/?view=x#end`,
    ])
      expect(await walk({ search })).toEqual([run.uid]);
    expect(await walk({ search: newUid() })).toEqual([]);
    expect(await walk({ search: `https://mill.example/runs/${run.uid}/timeline` })).toEqual([]);
  });

  test("an unknown source is refused", async () => {
    await expect(walk({ sources: ["TELEX"] })).rejects.toEqual(
      domainError({ reason: "invalid_source", kind: "invalid_argument" }),
    );
  });

  test("an unknown factory matches nothing", async () => {
    await p.run(caller);
    for (const uid of [newUid(), "nonsense"]) expect(await walk({ factoryUids: [uid] })).toEqual([]);
  });
});

describe("visibility", () => {
  test("a team reads its own runs, a user also personal runs, and with a team named only that team's", async () => {
    const otherCaller = aCaller();
    const mine = await p.run(caller);
    const personal = await p.run(caller, { owner: { type: "user", uid: caller.principal.uid } });
    const theirs = await p.run(otherCaller);
    expect((await walk({})).sort()).toEqual([mine.uid, personal.uid].sort());
    expect(await walk({ teamUid: caller.teams[0]!.teamUid })).toEqual([mine.uid]);
    expect(await walk({ teamUid: otherCaller.teams[0]!.teamUid })).toEqual([]);
    expect(await walk({ teamUid: newUid<TeamUid>() })).toEqual([]);
    await expect(walk({ ancestorRunUid: theirs.uid })).rejects.toEqual(domainError({ reason: "run_not_found" }));
  });
});

describe("a run by an external reference", () => {
  const find = (url: string, who = caller) => p.runs.findRunByReference({ url }, p.as(who));
  const report = (runUid: string, url: string, at: string) =>
    p.database.sql.query(
      `INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, created_at, committed_at)
       VALUES (gen_random_uuid(), $1, gen_random_uuid(), 1, 'EXTERNAL_REFERENCE', jsonb_build_object('url', $2::text), $3::timestamptz, now())`,
      [runUid, url, at],
    );

  test("is the first reporter among those that the caller can read, whatever the spelling of the URL", async () => {
    const [first, second, theirs] = [await p.run(caller), await p.run(caller), await p.run(aCaller())];
    await report(theirs.uid, "https://t.example/1", "2026-01-01");
    await report(second.uid, "https://t.example/1", "2026-01-03");
    await report(first.uid, "https://t.example/1", "2026-01-02");
    for (const url of ["https://t.example/1", "HTTPS://T.Example:443/1#part"])
      expect(await find(url)).toMatchObject({ runUid: first.uid });
    for (const url of ["https://t.example/2", "https://t.example/1?x"])
      await expect(find(url)).rejects.toEqual(domainError({ reason: "run_not_found" }));
    await expect(find("https://t.example/1", aCaller())).rejects.toEqual(domainError({ reason: "run_not_found" }));
    for (const url of ["", "x", "ftp://t.example", "https://u:p@t.example"])
      await expect(find(url)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "url_invalid" }));
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { metrics } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { NOW, OTHER_TEAM, OWNER, RUN_VIEWER, startWorld, STRANGER, TEAM, type World } from "./setup.ts";

let world: World;
let factoryUid: string;
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
});
afterAll(() => world.stop());

type Query = MessageInitShape<typeof metrics.ListPullRequestsRequestSchema>;
const list = (query: Query = {}, caller = OWNER) =>
  world.metrics.listPullRequests({ factoryUid, ...query }, call(caller));
const urlsOf = async (query: Query = {}): Promise<string[]> => (await list(query)).data.map(({ url }) => url);
const time = (text: string) => timestampFromDate(new Date(text));
const url = (number: number, repo = "Acme/Shop"): string => `https://github.com/${repo}/pull/${number}`;

type RecordInit = {
  repo?: string;
  state?: string;
  openedAt?: string | null;
  reviewedAt?: string | null;
  mergedAt?: string | null;
  updatedAt?: string;
  of?: string;
};

/** Stores the record of a pull request as the projection would. */
async function aRecord(number: number, init: RecordInit = {}): Promise<void> {
  const {
    repo = "Acme/Shop",
    state = "open",
    openedAt = "2026-11-18T10:00:00Z",
    reviewedAt = null,
    mergedAt = null,
  } = init;
  const { updatedAt = "2026-11-19T10:00:00Z", of = factoryUid } = init;
  const runUid = newUid();
  await world.rows(
    `INSERT INTO factory_pull_requests (
       factory_uid, url_key, team_uid, url, provider, repo_full_name, pr_number, title, state, has_host_facts,
       opened_at, first_human_review_at, merged_at, updated_at, history_complete, runs, kickoff_at, kickoff_run_uid, first_seen_at,
       inference_micros, compute_micros, platform_micros)
     VALUES ($1, $2, $3, $4, 'GITHUB', $5, $6, 'Fix it', $7, false, $8, $9, $10, $11, false, $12::jsonb, '2026-11-18T09:00:00Z', $13, $11, 1, 2, 3)`,
    [
      of,
      url(number, repo).slice("https://".length).toLowerCase(),
      TEAM,
      url(number, repo),
      repo,
      number,
      state,
      openedAt,
      reviewedAt,
      mergedAt,
      updatedAt,
      JSON.stringify([{ run_id: runUid, root_run_id: runUid, created_at: "2026-11-18T09:00:00.000Z" }]),
      runUid,
    ],
  );
}

/** Reads all pages; calls `between` after each one. */
async function walk(query: Query, between: (page: number) => Promise<void> = async () => {}): Promise<string[]> {
  const found: string[] = [];
  let pageToken = "";
  for (let page = 1; ; page++) {
    const { data, nextPageToken } = await list({ ...query, pageToken });
    found.push(...data.map((record) => record.url));
    if (nextPageToken === "") return found;
    expect(data.length).toBeGreaterThan(0); // clients stop at an empty page
    pageToken = nextPageToken;
    await between(page);
  }
}

test("returns the record of a pull request, without what is not known", async () => {
  await aRecord(7, { mergedAt: "2026-11-18T12:00:00Z", state: "merged" });
  await world.settle(); // the feeds have been read until now
  const { scope, data, nextPageToken } = await list();
  expect(scope).toMatchObject({ teamUid: TEAM, factoryUid });
  expect(timestampDate(scope!.asOf!)).toEqual(NOW);
  expect(nextPageToken).toBe("");
  const [{ $typeName: _, ...record }] = data as [metrics.PullRequest];
  expect(record).toMatchObject({
    provider: "GITHUB",
    repoFullName: "Acme/Shop",
    prNumber: 7,
    url: url(7),
    title: "Fix it",
    factoryUid,
    teamUid: TEAM,
    state: "merged",
    historyComplete: false,
    openedAt: time("2026-11-18T10:00:00Z"),
    mergedAt: time("2026-11-18T12:00:00Z"),
    updatedAt: time("2026-11-19T10:00:00Z"),
    kickoffAt: time("2026-11-18T09:00:00Z"),
    runs: [{ createdAt: time("2026-11-18T09:00:00Z") }],
    cycleTime: { kickoffToPr: 3600, kickoffToMerge: 10_800 },
  });
  for (const absent of [
    "authorLogin",
    "firstHumanReviewAt",
    "closedAt",
    "additions",
    "numCommits",
    "humanInteractions",
    "humanCodeChange",
  ] as const) {
    expect(record[absent]).toBeUndefined();
  }
  expect([record.cycleTime!.prToFirstReview, record.cycleTime!.firstReviewToMerge]).toEqual([undefined, undefined]);
});

test("leaves a negative stage of the cycle time out", async () => {
  await aRecord(7, { reviewedAt: "2026-11-18T09:30:00Z", mergedAt: "2026-11-18T09:45:00Z" });
  const [record] = (await list()).data;
  expect({ ...record!.cycleTime }).toMatchObject({ kickoffToPr: 3600, firstReviewToMerge: 900, kickoffToMerge: 2700 });
  expect(record!.cycleTime!.prToFirstReview).toBeUndefined();
});

test("lists newest opened first, ties by URL, and those of unknown opening last", async () => {
  await aRecord(3, { openedAt: null });
  await aRecord(2, { openedAt: "2026-11-17T10:00:00Z" });
  await aRecord(9, { openedAt: "2026-11-18T10:00:00Z" });
  await aRecord(1, { openedAt: null });
  await aRecord(4, { openedAt: "2026-11-18T10:00:00Z" });
  const expected = [url(4), url(9), url(2), url(1), url(3)];
  expect(await urlsOf()).toEqual(expected);
  expect(await walk({ pageSize: 1 })).toEqual(expected);
  expect(await walk({ pageSize: 2 })).toEqual(expected);
});

describe("filters", () => {
  beforeEach(async () => {
    await aRecord(1, { openedAt: "2026-11-10T10:00:00Z", state: "open", updatedAt: "2026-11-10T10:00:00Z" });
    await aRecord(2, {
      openedAt: "2026-11-11T10:00:00Z",
      state: "draft",
      repo: "acme/other",
      updatedAt: "2026-11-11T10:00:00Z",
    });
    await aRecord(3, {
      openedAt: "2026-11-12T10:00:00Z",
      state: "merged",
      mergedAt: "2026-11-13T10:00:00Z",
      updatedAt: "2026-11-13T10:00:00Z",
    });
    await aRecord(4, { openedAt: "2026-11-13T10:00:00Z", state: "closed", updatedAt: "2026-11-14T10:00:00Z" });
    await aRecord(5, {
      openedAt: null,
      state: "merged",
      mergedAt: "2026-11-15T10:00:00Z",
      updatedAt: "2026-11-15T10:00:00Z",
    });
  });

  test.each<[string, Query, number[]]>([
    ["a repository in any case", { repo: "ACME/OTHER" }, [2]],
    ["a repository that has none", { repo: "acme/sho" }, []],
    ["one state", { states: ["merged"] }, [3, 5]],
    ["any of several states", { states: ["draft", "open"] }, [2, 1]],
    ["openings after a time, exclusively", { openedAfter: time("2026-11-11T10:00:00Z") }, [4, 3]],
    ["openings before a time, exclusively", { openedBefore: time("2026-11-12T10:00:00Z") }, [2, 1]],
    ["merges after a time, exclusively", { mergedAfter: time("2026-11-13T10:00:00Z") }, [5]],
    ["merges before a time, exclusively", { mergedBefore: time("2026-11-15T10:00:00Z") }, [3]],
    ["changes after a time, exclusively", { updatedAfter: time("2026-11-13T10:00:00Z") }, [4, 5]],
    [
      "several at once",
      { repo: "acme/shop", states: ["merged", "closed"], openedAfter: time("2026-11-01T00:00:00Z") },
      [4, 3],
    ],
  ])("select by %s", async (_, query, numbers) =>
    expect((await list(query)).data.map(({ prNumber }) => prNumber)).toEqual(numbers),
  );

  test("refuse an unknown state", async () =>
    expect(list({ states: ["open", "OPEN"] })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "state_invalid" }),
    ));
});

test("returns 50 records by default, at most 500, and refuses other limits", async () => {
  await world.rows(
    `INSERT INTO factory_pull_requests (
       factory_uid, url_key, team_uid, url, provider, repo_full_name, pr_number, state, has_host_facts, opened_at, updated_at, history_complete,
       runs, kickoff_at, kickoff_run_uid, first_seen_at, inference_micros, compute_micros, platform_micros)
     SELECT $1, 'github.com/acme/shop/pull/' || n, $2, 'https://github.com/acme/shop/pull/' || n, 'GITHUB', 'acme/shop', n, 'open', true,
            '2026-11-18T10:00:00Z', '2026-11-18T10:00:00Z', true, '[]', '2026-11-18T09:00:00Z', $1, '2026-11-18T09:00:00Z', 0, 0, 0
       FROM generate_series(1, 501) n`,
    [factoryUid, TEAM],
  );
  const sizes = [await list(), await list({ pageSize: 500 })].map(({ data, nextPageToken }) => [
    data.length,
    nextPageToken === "",
  ]);
  expect(sizes).toEqual([
    [50, false],
    [500, false],
  ]);
  for (const pageSize of [-1, 501]) {
    await expect(list({ pageSize })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "limit_invalid" }),
    );
  }
  expect(new Set(await walk({ pageSize: 7 })).size).toBe(501);
});

test("lists every record once that existed when the walk began, while others are added", async () => {
  const opened = (day: number) => `2026-11-${String(day).padStart(2, "0")}T10:00:00Z`;
  const before = [2, 4, 6, 8, 10, 12];
  for (const day of before) await aRecord(day, { openedAt: opened(day) });
  await aRecord(100, { openedAt: null });
  const added = [13, 11, 9, 7, 5, 3, 1];
  const found = await walk({ pageSize: 2 }, async () => {
    const day = added.shift();
    if (day !== undefined) await aRecord(day, { openedAt: opened(day) });
    const other = added.shift();
    if (other !== undefined) await aRecord(other, { openedAt: opened(other) });
  });
  expect(new Set(found).size).toBe(found.length);
  expect(found.filter((each) => [...before, 100].some((day) => each === url(day)))).toEqual(
    [...before.toReversed(), 100].map((day) => url(day)),
  );
});

describe("a cursor", () => {
  const filter = { repo: "acme/shop", states: ["open", "merged"] };
  let pageToken: string;
  beforeEach(async () => {
    for (const number of [1, 2, 3]) await aRecord(number);
    ({ nextPageToken: pageToken } = await list({ ...filter, pageSize: 1 }));
  });

  test("continues the same question in another spelling and with another page size", async () => {
    const again = { repo: "ACME/shop", states: ["merged", "open", "open"], pageSize: 5, pageToken };
    expect(await urlsOf(again)).toEqual([url(2), url(3)]);
  });

  test.each<[string, Query]>([
    ["another repository", { repo: "acme/other" }],
    ["other states", { states: ["open"] }],
    ["a further bound", { updatedAfter: time("2026-11-01T00:00:00Z") }],
  ])("is refused with %s", async (_, changed) =>
    expect(list({ ...filter, ...changed, pageToken })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "invalid_cursor" }),
    ),
  );

  test("is refused for another factory", async () =>
    expect(list({ ...filter, pageToken, factoryUid: world.aFactory() })).rejects.toEqual(
      domainError({ reason: "invalid_cursor" }),
    ));

  test("is refused if it is not one", async () =>
    expect(list({ ...filter, pageToken: "nonsense" })).rejects.toEqual(domainError({ reason: "invalid_cursor" })));
});

test("hides the factory from strangers as if it did not exist", async () => {
  await aRecord(1);
  const refusals = await Promise.all([
    list({}, STRANGER).catch((error: unknown) => error),
    list({ factoryUid: newUid() }, STRANGER).catch((error: unknown) => error),
    list({ factoryUid: "nonsense" }, OWNER).catch((error: unknown) => error),
  ]);
  for (const refusal of refusals)
    expect(refusal).toEqual(domainError({ kind: "not_found", reason: "factory_not_found" }));
  expect(new Set(refusals.map((refusal) => (refusal as { message: string }).message)).size).toBe(1);
  await expect(list({}, RUN_VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
});

test("lists the pull requests of one factory only", async () => {
  await aRecord(1);
  await aRecord(2, { of: world.aFactory() });
  await aRecord(3, { of: world.aFactory({ teamUid: OTHER_TEAM }) });
  expect(await urlsOf()).toEqual([url(1)]);
});

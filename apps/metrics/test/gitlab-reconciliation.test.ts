import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { deliveryWorld } from "./delivery-world.ts";
import { startWorld, type World } from "./setup.ts";

let world: World;
let on: ReturnType<typeof deliveryWorld>;
let factoryUid: string;

beforeAll(async () => {
  world = await startWorld();
  on = deliveryWorld(world);
});
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
});
afterAll(() => world.stop());

const REPO = "group/sub/shop";
const URL = `https://gitlab.com/${REPO}/-/merge_requests/7`;
const BOT = { id: 1, username: "project_5_bot" };
const ADA = { id: 2, username: "ada" };
const at = (minute: number): string => new Date(Date.parse("2026-11-20T08:00:00Z") + minute * 60_000).toISOString();

/**
 * What happened: opened by the platform, pushed, commented, approved, withdrawn, approved again, closed, reopened and
 * merged by a person.
 */
const attributes = (minute: number, more: object = {}) => ({
  ...{ iid: 7, url: URL, title: "Fix", state: "opened", draft: false, author_id: BOT.id },
  ...{ created_at: at(0), updated_at: at(minute), last_commit: { id: "b" } },
  ...more,
});
const hook = (minute: number, user: object, more: object) => ({
  object_kind: "merge_request",
  user,
  project: { path_with_namespace: REPO },
  object_attributes: attributes(minute, more),
});
const note = (id: number, minute: number, type: string | null) => ({
  object_kind: "note",
  user: ADA,
  project: { path_with_namespace: REPO },
  object_attributes: { id, type, created_at: at(minute), system: false, action: "create" },
  merge_request: attributes(minute),
});
const DELIVERIES = [
  hook(0, BOT, { action: "open" }),
  hook(1, ADA, { action: "update", oldrev: "a" }),
  note(101, 2, null),
  note(102, 3, "DiffNote"),
  hook(4, ADA, { action: "approved" }),
  hook(5, ADA, { action: "unapproved" }),
  hook(6, ADA, { action: "approved" }),
  { ...hook(7, ADA, { action: "update", draft: true }), changes: { draft: { previous: false, current: true } } },
  hook(8, ADA, { action: "close", state: "closed" }),
  hook(9, ADA, { action: "reopen" }),
  hook(10, ADA, { action: "merge", state: "merged" }),
];

const restNote = (id: number, minute: number, author: object, body: string, more: object = {}) => ({
  ...{ id, author, body, system: true, type: null, created_at: at(minute) },
  ...more,
});
const REST: Readonly<Record<string, unknown>> = {
  pull_request: {
    ...{ iid: 7, web_url: URL, title: "Fix", state: "merged", draft: false, author: BOT },
    ...{ created_at: at(0), updated_at: at(10), merged_at: at(10), closed_at: null },
  },
  comments: [
    restNote(106, 7, ADA, "marked this merge request as **draft**"),
    restNote(105, 6, ADA, "approved this merge request"),
    restNote(104, 5, ADA, "unapproved this merge request"),
    restNote(103, 4, ADA, "approved this merge request"),
    restNote(102, 3, ADA, "On a line.", { system: false, type: "DiffNote" }),
    restNote(101, 2, ADA, "A comment.", { system: false }),
    restNote(100, 1, ADA, "added 1 commit"),
  ],
  events: [
    { id: 1, user: ADA, state: "closed", created_at: at(8) },
    { id: 2, user: ADA, state: "reopened", created_at: at(9) },
    { id: 3, user: ADA, state: "merged", created_at: at(10) },
  ],
  pushes: [
    { id: 2, head_commit_sha: "b", created_at: at(1) },
    { id: 1, head_commit_sha: "a", created_at: at(0) },
  ],
  pull_requests: [],
};

const serve = (): void => {
  world.orchestrator.readCodeHost = async ({ resource, etag }) => ({
    ...{ nextPage: "", answeredAt: world.clock.now(), rateLimit: undefined, retryAfterSeconds: 0 },
    ...(etag === '"1"'
      ? { outcome: "not_modified" as const, body: undefined, etag }
      : { outcome: "found" as const, body: REST[resource], etag: '"1"' }),
  });
};
/** Returns the resources that are read, in order. */
function serveAndCount(): string[] {
  const read: string[] = [];
  serve();
  const answer = world.orchestrator.readCodeHost!;
  world.orchestrator.readCodeHost = (request) => {
    read.push(request.resource);
    return answer(request);
  };
  return read;
}
const deliver = async (): Promise<void> => {
  for (const payload of DELIVERIES)
    on.gitlab(payload.object_kind === "note" ? "Note Hook" : "Merge Request Hook", payload, new Date(at(11)));
  await on.settle();
};
const reconcile = async (): Promise<void> => {
  world.clock.advance(120_000);
  await world.service.reconcileDue();
};
const EXPECTED = {
  provider: "GITLAB",
  state: "merged",
  authorLogin: "project_5_bot",
  historyComplete: true,
  humanCodeChange: true,
  humanInteractions: { opened: 0, codePush: 1, reviewApproved: 1, comment: 1, reviewComment: 1, prAction: 4, total: 8 },
};

test("a merge request is complete after it was read, without any delivery", async () => {
  serve();
  await on.produced(factoryUid, URL, 0, REPO, 7, "GITLAB");
  await reconcile();
  const record = await on.record(factoryUid);
  expect(record).toMatchObject(EXPECTED);
  expect(record.firstHumanReviewAt?.seconds).toBe(BigInt(Date.parse(at(6)) / 1000));
});

test.each(["pushes", "comments"])(
  "is not complete if the %s are too many, and keeps what was delivered",
  async (which) => {
    serve();
    const answer = world.orchestrator.readCodeHost!;
    world.orchestrator.readCodeHost = async (request) =>
      request.resource === which ? { ...(await answer(request)), outcome: "not_found" } : answer(request);
    await on.produced(factoryUid, URL, 0, REPO, 7, "GITLAB");
    await reconcile();
    expect(await on.record(factoryUid)).toMatchObject({ historyComplete: false, humanInteractions: { codePush: 0 } });
    await deliver();
    await reconcile();
    expect(await on.record(factoryUid)).toMatchObject({ ...EXPECTED, humanInteractions: { codePush: 1, prAction: 4 } });
  },
);

test.each<[string, () => Promise<void>]>([
  ["before it was read", async () => (await deliver(), reconcile())],
  ["after it was read", async () => (await reconcile(), await deliver(), reconcile())],
])("deliveries that arrive %s count nothing twice", async (_, play) => {
  serve();
  await on.produced(factoryUid, URL, 0, REPO, 7, "GITLAB");
  await play();
  expect(await on.record(factoryUid)).toMatchObject(EXPECTED);
});

test("while nothing changes no list is read again", async () => {
  const read = serveAndCount();
  await on.produced(factoryUid, URL, 0, REPO, 7, "GITLAB");
  await reconcile();
  read.length = 0;
  await world.rows("UPDATE polled_pull_requests SET poll_at = $1, is_final = false", [world.clock.now()]);
  await world.service.reconcileDue();
  expect(read).toEqual(["pull_request", "comments"]);
});

test("every page is read once", async () => {
  const read = serveAndCount();
  await on.produced(factoryUid, URL, 0, REPO, 7, "GITLAB");
  await reconcile();
  expect(read).toEqual(["pull_requests", "pull_request", "comments", "events", "pushes"]);
});

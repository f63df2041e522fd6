import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { call } from "@millwright/rpc";
import { OTHER_TEAM, OWNER, startWorld, TEAM, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
afterAll(() => w.stop());
beforeEach(async () => {
  await w.reset();
  factoryUid = (await w.aFactory()).uid;
  await w.factories.putSource(
    { factoryUid, source: { kind: "git", repositoryUrl: "https://git.example/Acme/factory.git" } },
    call(OWNER),
  );
  await w.rows("UPDATE tracked_branches SET poll_at = now() + interval '1 hour'");
});

const [NONE, FIRST, SECOND, THIRD] = ["0", "1", "2", "3"].map((digit) => digit.repeat(40)) as [
  string,
  string,
  string,
  string,
];
type Push = { before: string; after: string; ref?: string; url?: string; team?: string };
const github = (
  { before, after, ref = "refs/heads/main", url = "https://git.example/acme/factory.git", team = TEAM }: Push,
  event = "push",
) =>
  w.webhookIngress.acceptFromCodeHost(
    team,
    "github",
    { "x-github-event": event },
    {
      ref,
      before,
      after,
      repository: {
        full_name: "acme/factory",
        clone_url: url,
        ssh_url: `git@${new URL(url).host}:${new URL(url).pathname.slice(1)}`,
      },
    },
  );
const gitlab = ({ before, after }: Push) =>
  w.webhookIngress.acceptFromCodeHost(
    TEAM,
    "gitlab",
    { "x-gitlab-event": "Push Hook" },
    {
      object_kind: "push",
      ref: "refs/heads/main",
      before,
      after,
      project: { path_with_namespace: "acme/factory", git_http_url: "https://git.example/acme/factory.git" },
    },
  );
/** Handles all pending pushes and the work that they enqueue. */
const handlePushes = async () => {
  await w.service.pushes.drain();
  await w.service.work.drain();
};
const production = async () => (await w.branches.listBranches({ factoryUid }, call(VIEWER))).branches[0]!;
const isDue = async () => (await w.rows("SELECT 1 FROM tracked_branches WHERE poll_at <= now()")).length > 0;

describe("a push that a code host reports", () => {
  test.each([
    ["GitHub", github],
    ["GitLab", gitlab],
  ])("registers the head of %s, and polls the repository too", async (_host, push) => {
    push({ before: NONE, after: FIRST });
    await handlePushes();
    push({ before: FIRST, after: SECOND });
    await handlePushes();
    expect(await production()).toMatchObject({
      registeredHeadSha: SECOND,
      freshness: "STALE",
      state: "ACTIVE",
      lastCheckedAt: expect.anything(),
    });
    expect(await isDue()).toBe(true);
    expect((await w.eventTypes()).filter((type) => type === "branch.updated")).toHaveLength(2);
  });
  test("that arrives late or twice does not move the head back, and polls the repository", async () => {
    for (const [before, after] of [
      [NONE, FIRST],
      [FIRST, SECOND],
      [SECOND, THIRD],
    ] as const) {
      github({ before, after });
      await handlePushes();
    }
    github({ before: FIRST, after: SECOND });
    github({ before: NONE, after: FIRST });
    await w.rows("UPDATE tracked_branches SET poll_at = now() + interval '1 hour'");
    await handlePushes();
    expect(await production()).toMatchObject({ registeredHeadSha: THIRD });
    expect(await isDue()).toBe(true);
  });
  test("that deletes a branch leaves its head UNKNOWN, until it is pushed again", async () => {
    github({ before: NONE, after: FIRST });
    await handlePushes();
    github({ before: FIRST, after: NONE });
    await handlePushes();
    const { registeredHeadSha, ...rest } = await production();
    expect([registeredHeadSha, rest]).toMatchObject([
      undefined,
      { freshness: "UNKNOWN", lastError: { code: "branch_missing" } },
    ]);
    github({ before: NONE, after: SECOND });
    await handlePushes();
    expect(await production()).toMatchObject({ registeredHeadSha: SECOND, freshness: "STALE" });
  });
  test.each<[string, () => unknown]>([
    ["of another branch", () => github({ before: NONE, after: FIRST, ref: "refs/heads/other" })],
    ["of a tag of the same name", () => github({ before: NONE, after: FIRST, ref: "refs/tags/main" })],
    ["of another repository", () => github({ before: NONE, after: FIRST, url: "https://git.example/acme/other.git" })],
    [
      "of another host",
      () => github({ before: NONE, after: FIRST, url: "https://elsewhere.example/acme/factory.git" }),
    ],
    ["to another team", () => github({ before: NONE, after: FIRST, team: OTHER_TEAM })],
    ["with a head that is none", () => github({ before: NONE, after: "main; rm -rf /" })],
    ["by its header only", () => w.webhookIngress.acceptFromCodeHost(TEAM, "github", { "x-github-event": "push" }, [])],
    ["by another event", () => github({ before: NONE, after: FIRST }, "pull_request")],
  ])("%s changes nothing", async (_what, push) => {
    push();
    await handlePushes();
    expect((await production()).registeredHeadSha).toBeUndefined();
    expect(await isDue()).toBe(false);
  });
  test("does not revive retired tracking, and leaves no work if nothing is tracked", async () => {
    const { uid } = await production();
    await w.factories.putSource({ factoryUid, source: { kind: "files", files: aTree() } }, call(OWNER));
    github({ before: NONE, after: FIRST });
    await w.service.pushes.drain();
    expect(await w.rows("SELECT 1 FROM stream.work_items")).toEqual([]);
    expect((await w.branches.getBranch({ factoryUid, branchUid: uid }, call(VIEWER))).branch).toMatchObject({
      state: "DELETED",
      freshness: "UNKNOWN",
    });
  });
});

import { beforeEach, describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { gitlabHost } from "../src/index.ts";

type Merge = { iid: number; title: string; source_branch: string; target_branch: string; state: string };
type Entry = { path: string; mode: string; id: string; content?: string };

const SHA = "a".repeat(40);
const KNOWN = "e".repeat(40);
const PROJECT = "acme/tools/shop";
/** A code host with one project, in the shape of GitLab's REST API. */
const fake = {
  branches: new Map<string, string>(),
  merges: [] as Merge[],
  tree: [] as Entry[],
  isEmpty: false,
  refuse: undefined as { status: number; body?: unknown } | undefined,
  seen: [] as string[],
};
const shown = (merge: Merge) => ({
  ...merge,
  labels: ["bug", "api"],
  author: { id: 1, username: "ada" },
  id: 1_000 + merge.iid,
  sha: fake.branches.get(merge.source_branch) ?? SHA,
  web_url: `https://gitlab.test/${PROJECT}/-/merge_requests/${merge.iid}`,
});

async function answer(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const url = new URL(request.url);
  fake.seen.push(`${request.method} ${url.pathname} ${request.headers.get("authorization")}`);
  if (fake.refuse) return Response.json(fake.refuse.body ?? {}, { status: fake.refuse.status });
  const [, id = "", path = ""] = /^\/api\/v4\/projects\/([^/]+)(.*)$/.exec(url.pathname) ?? [];
  if (decodeURIComponent(id) !== PROJECT) return Response.json({ message: "404 Project Not Found" }, { status: 404 });
  if (path === "") return Response.json({ default_branch: fake.isEmpty ? null : "trunk" });
  const branch = /^\/repository\/branches\/([^/]+)$/.exec(path)?.[1];
  const sha = branch && fake.branches.get(decodeURIComponent(branch));
  if (sha) return Response.json({ name: branch, commit: { id: sha } });
  if (path === "/repository/tags/v1")
    return Response.json({ name: "v1", target: "tag object", commit: { id: "c".repeat(40) } });
  if (path === `/repository/commits/${KNOWN}`) return Response.json({ id: KNOWN });
  if (path === "/repository/tree") {
    if (fake.isEmpty) return Response.json({ message: "404 Tree Not Found" }, { status: 404 });
    const [page, size] = [Number(url.searchParams.get("page")), Number(url.searchParams.get("per_page"))];
    return Response.json(fake.tree.slice((page - 1) * size, page * size));
  }
  const blob = fake.tree.find((entry) => path === `/repository/blobs/${entry.id}`);
  if (blob)
    return Response.json({
      size: blob.content?.length ?? 0,
      encoding: "base64",
      content: Buffer.from(blob.content ?? "").toString("base64"),
    });
  if (path === "/merge_requests/1/diffs")
    return Response.json(
      url.searchParams.get("page") === "1"
        ? Array.from({ length: 100 }, (_one, n) => ({ new_path: `f${n}`, old_path: `f${n}` }))
        : [
            { new_path: "new", old_path: "old", diff: "@@ -1 +1 @@\n-a\n+b\n" },
            { new_path: "made", old_path: "made", new_file: true, diff: "@@ -0,0 +1 @@\n+c\n" },
          ],
    );
  const iid = /^\/merge_requests\/(\d+)$/.exec(path)?.[1];
  const merge = fake.merges.find((one) => String(one.iid) === iid);
  if (merge) return Response.json(shown(merge));
  if (path === "/merge_requests" && request.method === "GET") {
    const [source, target, state] = ["source_branch", "target_branch", "state"].map((name) =>
      url.searchParams.get(name),
    );
    return Response.json(
      fake.merges
        .filter((one) => one.source_branch === source && one.target_branch === target && one.state === state)
        .map(shown),
    );
  }
  if (path === "/merge_requests") {
    const {
      source_branch: source = "",
      target_branch: target = "",
      title = "",
    } = (await request.json()) as Record<string, string>;
    if (target === "absent")
      return Response.json({ message: ['Target branch "absent" does not exist'] }, { status: 400 });
    if (
      fake.merges.some((one) => one.source_branch === source && one.target_branch === target && one.state === "opened")
    )
      return Response.json(
        { message: ["Another open merge request already exists for this source branch: !1"] },
        { status: 409 },
      );
    const made = { iid: fake.merges.length + 1, title, source_branch: source, target_branch: target, state: "opened" };
    fake.merges.push(made);
    return Response.json(shown(made), { status: 201 });
  }
  return Response.json({ message: "404 Not Found" }, { status: 404 });
}

const host = gitlabHost({ baseUrl: "https://gitlab.test/api/v4/", token: "hunter2", fetch: answer });
const shop = { owner: "acme/tools", repo: "shop" };
const wanted = {
  repository: shop,
  head: "agent/run-1",
  headSha: SHA,
  base: "trunk",
  title: "Open the shop",
  body: "Why.",
};
beforeEach(
  () =>
    void Object.assign(fake, {
      branches: new Map([["agent/run-1", SHA]]),
      merges: [],
      tree: [],
      isEmpty: false,
      refuse: undefined,
      seen: [],
    }),
);

describe("opening a merge request", () => {
  test("opens it once; a retry adopts it", async () => {
    const opened = await host.ensurePullRequest(wanted);
    expect(opened).toEqual({
      number: 1,
      url: `https://gitlab.test/${PROJECT}/-/merge_requests/1`,
      state: "open",
      title: "Open the shop",
      head: "agent/run-1",
      headSha: SHA,
      base: "trunk",
      adopted: false,
    });
    expect(await host.ensurePullRequest(wanted)).toEqual({ ...opened, adopted: true });
    expect(fake.merges).toHaveLength(1);
    expect(fake.seen.every((line) => line.endsWith(" Bearer hunter2"))).toBe(true);
  });
  test("does not adopt a closed one, or one with another target", async () => {
    fake.merges.push(
      { iid: 1, title: "t", source_branch: wanted.head, target_branch: "trunk", state: "closed" },
      { iid: 2, title: "t", source_branch: wanted.head, target_branch: "next", state: "opened" },
    );
    expect(await host.ensurePullRequest(wanted)).toMatchObject({ number: 3, adopted: false });
  });
  test.each([
    ["a branch that moved on", { headSha: "b".repeat(40) }, "head_moved", "conflict"],
    ["an absent branch", { head: "absent" }, "head_branch_not_found", "not_found"],
    ["an absent target", { base: "absent" }, "pull_request_refused", "unsupported"],
    ["an invalid branch", { head: "a..b" }, "branch_invalid", "invalid_argument"],
    ["an invalid project", { repository: { owner: "acme/..", repo: "x" } }, "repository_invalid", "invalid_argument"],
    ["an absent project", { repository: { owner: "acme", repo: "absent" } }, "head_branch_not_found", "not_found"],
  ])("for %s is rejected", async (_what, change, reason, kind) => {
    await expect(host.ensurePullRequest({ ...wanted, ...change })).rejects.toEqual(domainError({ kind, reason }));
    expect(fake.merges).toEqual([]);
  });
});

test("a merge request has a unified diff of all its files", async () => {
  fake.merges.push({ iid: 1, title: "t", source_branch: "agent/run-1", target_branch: "trunk", state: "opened" });
  const diff = await host.diffPullRequest(shop, 1);
  expect(diff).toMatch(/^diff --git a\/f0 b\/f0\n--- a\/f0\n/);
  expect(diff).toMatch(
    /\n--- a\/old\n\+\+\+ b\/new\n@@ -1 \+1 @@\n-a\n\+b\ndiff --git a\/made b\/made\n--- \/dev\/null\n\+\+\+ b\/made\n@@ -0,0 \+1 @@\n\+c\n$/,
  );
  expect(await host.diffPullRequest(shop, 2)).toBeUndefined();
});

test("refs are branches, then tags, then full commit ids", async () => {
  const refs = ["agent/run-1", "v1", KNOWN, "f".repeat(40), "absent"];
  expect(await Promise.all(refs.map((ref) => host.commitOf(shop, ref)))).toEqual([
    SHA,
    "c".repeat(40),
    KNOWN,
    undefined,
    undefined,
  ]);
});

test("a merge request is read with its state", async () => {
  fake.merges.push(
    ...["opened", "closed", "merged", "locked"].map((state, index) => ({
      iid: index + 1,
      title: "t",
      source_branch: "agent/run-1",
      target_branch: "trunk",
      state,
    })),
  );
  expect(
    await Promise.all([1, 2, 3, 4, 5].map(async (number) => (await host.getPullRequest(shop, number))?.state)),
  ).toEqual(["open", "closed", "merged", "open", undefined]);
});

test("a merge request is read with its labels, author, target and every changed path", async () => {
  fake.merges.push({ iid: 1, title: "t", source_branch: "agent/run-1", target_branch: "trunk", state: "opened" });
  expect(await host.describePullRequest(shop, 1)).toEqual({
    labels: ["bug", "api"],
    author: "ada",
    base: "trunk",
    paths: [...Array.from({ length: 100 }, (_one, n) => `f${n}`), "new", "old", "made"],
  });
  expect(await host.describePullRequest(shop, 2)).toBeUndefined();
});

test("projects below groups have their default branch and branches; absent projects are not found", async () => {
  expect([
    await host.defaultBranch(shop),
    await host.branchSha(shop, "agent/run-1"),
    await host.branchSha(shop, "absent"),
  ]).toEqual(["trunk", SHA, undefined]);
  await expect(host.defaultBranch({ owner: "acme", repo: "absent" })).rejects.toEqual(
    domainError({ reason: "repository_not_found" }),
  );
  fake.isEmpty = true;
  expect(await host.defaultBranch(shop)).toBe("main");
});

test("returns chosen files of the default branch over its pages, without links, directories and files that are too long", async () => {
  const other = Array.from({ length: 100 }, (_one, index) => ({
    path: `other-${index}`,
    mode: "100644",
    id: index.toString(16).padStart(40, "f"),
  }));
  const entries = [
    ["skills", "040000"],
    ["skills/a.md", "100644", "a"],
    ["skills/b.md", "100755", "bb"],
    ["skills/link", "120000"],
    ["skills/long", "100644", "x".repeat(101)],
  ] as const;
  fake.tree = [
    ...other,
    ...entries.map(([path, mode, content], index) => ({
      path,
      mode,
      id: String(index).repeat(40),
      content,
    })),
  ];
  const read = async (filesMax: number) =>
    (await host.readFiles(shop, { wants: (path) => path.startsWith("skills"), filesMax, fileBytesMax: 100 })).map(
      ({ path, content }) => [path, Buffer.from(content).toString()],
    );
  expect([await read(9), await read(1)]).toEqual([
    [
      ["skills/a.md", "a"],
      ["skills/b.md", "bb"],
    ],
    [["skills/a.md", "a"]],
  ]);
  fake.isEmpty = true;
  expect(await read(9)).toEqual([]);
});

test.each([
  [401, "code_host_unauthorized"],
  [403, "code_host_forbidden"],
  [429, "code_host_rate_limited"],
  [502, "code_host_unavailable"],
])("a %i is translated into our error", async (status, reason) => {
  fake.refuse = { status };
  await expect(host.defaultBranch(shop)).rejects.toEqual(domainError({ reason }));
});

test.each([
  ["https://gitlab.com/api/v4", "https://gitlab.com/acme/tools/shop.git"],
  ["https://git.example.com/gitlab/api/v4/", "https://git.example.com/gitlab/acme/tools/shop.git"],
])("below the API %s projects are cloned from %s", (baseUrl, url) =>
  expect(gitlabHost({ baseUrl, token: "t" }).cloneUrl(shop)).toBe(url),
);

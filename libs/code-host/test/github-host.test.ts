import http from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { githubHost, type PullRequestHost } from "../src/index.ts";

type Answer = { status: number; body?: unknown; headers?: Record<string, string> };
type Pull = { number: number; title: string; head: string; base: string; state: string };

const KNOWN = "e".repeat(40);

/** A code host with one repository, acme/shop, in the shape of GitHub's REST API. */
const fake = {
  branches: new Map<string, string>(),
  pulls: [] as Pull[],
  seen: [] as string[],
  refuse: undefined as Answer | undefined,
  tree: undefined as { path: string; mode: string; sha: string; size?: number }[] | undefined,
};
const shown = (pull: Pull) => ({
  number: pull.number,
  title: pull.title,
  state: pull.state === "merged" ? "closed" : pull.state,
  merged_at: pull.state === "merged" ? "2026-11-20T10:00:00Z" : null,
  labels: [{ name: "bug" }],
  user: { login: "ada" },
  html_url: `http://host/acme/shop/pull/${pull.number}`,
  head: { ref: pull.head, sha: fake.branches.get(pull.head) },
  base: { ref: pull.base },
});

function answer(method: string, url: URL, body: Record<string, string>): Answer {
  if (fake.refuse) return fake.refuse;
  const [, path] = /^\/api\/v3\/repos\/acme\/shop(.*)$/.exec(decodeURIComponent(url.pathname)) ?? [];
  if (path === "") return { status: 200, body: { default_branch: "trunk" } };
  if (path === "/pulls/1/files")
    return {
      status: 200,
      body:
        url.searchParams.get("page") === "1"
          ? Array.from({ length: 100 }, (_one, n) => ({ filename: `f${n}` }))
          : [{ filename: "new", previous_filename: "old", status: "renamed", patch: "@@ -1 +1 @@\n-a\n+b" }],
    };
  const commit = /^\/commits\/(.+)$/.exec(path ?? "")?.[1];
  const named =
    commit === undefined
      ? undefined
      : (fake.branches.get(commit.replace(/^heads\//, "")) ?? { "tags/v1": "c".repeat(40), [KNOWN]: KNOWN }[commit]);
  if (commit !== undefined)
    return named && (commit.includes("/") || commit === KNOWN)
      ? { status: 200, body: { sha: named } }
      : { status: 422, body: { message: "No commit found" } };
  const branch = /^\/git\/ref\/heads\/(.+)$/.exec(path ?? "")?.[1];
  const sha = branch === undefined ? undefined : fake.branches.get(branch);
  if (sha !== undefined) return { status: 200, body: { object: { sha } } };
  if (path === "/pulls" && method === "GET") {
    const [head, base] = [url.searchParams.get("head"), url.searchParams.get("base")];
    return {
      status: 200,
      body: fake.pulls.filter((p) => p.state === "open" && `acme:${p.head}` === head && p.base === base).map(shown),
    };
  }
  if (path === "/pulls" && method === "POST") {
    const { head = "", base = "", title = "" } = body;
    const isOpen = fake.pulls.some((p) => p.state === "open" && p.head === head && p.base === base);
    if (isOpen || head === "same")
      return {
        status: 422,
        body: {
          message: "Validation Failed",
          errors: [
            { message: isOpen ? "A pull request already exists for acme:x." : "No commits between trunk and same" },
          ],
        },
      };
    const pull = { number: fake.pulls.length + 1, title, head, base, state: "open" };
    fake.pulls.push(pull);
    return { status: 201, body: shown(pull) };
  }
  if (path === "/git/trees/trunk")
    return fake.tree
      ? { status: 200, body: { tree: fake.tree } }
      : { status: 409, body: { message: "Git Repository is empty." } };
  const blob = fake.tree?.find(({ sha: one }) => path === `/git/blobs/${one}`);
  if (blob)
    return {
      status: 200,
      body: {
        content: Buffer.from(`content of ${blob.path}`)
          .toString("base64")
          .replace(/(.{8})/g, "$1\n"),
        encoding: "base64",
      },
    };
  const pull = fake.pulls.find((p) => path === `/pulls/${p.number}`);
  return pull ? { status: 200, body: shown(pull) } : { status: 404, body: { message: "Not Found" } };
}

const server = http.createServer((request, response) => {
  const serve = async () => {
    const body = request.method === "POST" ? ((await json(request)) as Record<string, string>) : {};
    fake.seen.push(`${request.method} ${request.headers.authorization ?? "anonymous"}`);
    const {
      status,
      body: responseBody,
      headers,
    } = answer(request.method ?? "", new URL(request.url ?? "", "http://host"), body);
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify(responseBody ?? {}));
  };
  void serve();
});

const shop = { owner: "acme", repo: "shop" };
const wanted = {
  repository: shop,
  head: "agent/run-1",
  headSha: "a".repeat(40),
  base: "trunk",
  title: "Open the shop",
  body: "Why.",
};
let host: PullRequestHost;

beforeAll(async () => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  host = githubHost({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v3/`,
    token: "hunter2",
  });
});
afterAll(() => server.close().closeAllConnections());
beforeEach(() => {
  Object.assign(fake, {
    branches: new Map([
      ["agent/run-1", wanted.headSha],
      ["same", wanted.headSha],
    ]),
    pulls: [],
    seen: [],
    refuse: undefined,
  });
});

describe("opening a pull request", () => {
  test("opens it once; a retry adopts it", async () => {
    const opened = await host.ensurePullRequest(wanted);
    expect(opened).toEqual({
      number: 1,
      url: "http://host/acme/shop/pull/1",
      state: "open",
      title: "Open the shop",
      head: "agent/run-1",
      headSha: wanted.headSha,
      base: "trunk",
      adopted: false,
    });
    expect(await host.ensurePullRequest(wanted)).toEqual({ ...opened, adopted: true });
    expect(fake.pulls).toHaveLength(1);
    expect(new Set(fake.seen.map((line) => line.split(" ").slice(1).join(" ")))).toEqual(new Set(["Bearer hunter2"]));
  });

  test("does not adopt a closed one, or one with another base", async () => {
    fake.pulls.push(
      { number: 1, title: "t", head: wanted.head, base: "trunk", state: "closed" },
      { number: 2, title: "t", head: wanted.head, base: "next", state: "open" },
    );
    expect(await host.ensurePullRequest(wanted)).toMatchObject({ number: 3, adopted: false });
  });

  test.each([
    ["a branch that moved on", { headSha: "b".repeat(40) }, "head_moved", "conflict"],
    ["an absent branch", { head: "absent" }, "head_branch_not_found", "not_found"],
    ["a branch without a difference", { head: "same" }, "pull_request_refused", "unsupported"],
    ["an invalid branch", { head: "a..b" }, "branch_invalid", "invalid_argument"],
    ["an invalid base", { base: "-x" }, "branch_invalid", "invalid_argument"],
    ["an invalid repository", { repository: { owner: "..", repo: "x" } }, "repository_invalid", "invalid_argument"],
  ])("for %s is rejected", async (_, change, reason, kind) => {
    await expect(host.ensurePullRequest({ ...wanted, ...change })).rejects.toEqual(domainError({ kind, reason }));
    expect(fake.pulls).toEqual([]);
  });
});

test("a pull request is read with its state; merged differs from closed", async () => {
  fake.pulls.push(
    ...["open", "closed", "merged"].map((state, i) => ({
      number: i + 1,
      title: "t",
      head: "same",
      base: "trunk",
      state,
    })),
  );
  const states = await Promise.all(
    [1, 2, 3, 4].map(async (number) => (await host.getPullRequest(shop, number))?.state),
  );
  expect(states).toEqual(["open", "closed", "merged", undefined]);
});

test("a pull request is read with its labels, author, base and every changed path", async () => {
  fake.pulls.push({ number: 1, title: "t", head: "same", base: "trunk", state: "open" });
  expect(await host.describePullRequest(shop, 1)).toEqual({
    labels: ["bug"],
    author: "ada",
    base: "trunk",
    paths: [...Array.from({ length: 100 }, (_one, n) => `f${n}`), "new", "old"],
  });
  expect(await host.describePullRequest(shop, 2)).toBeUndefined();
});

test("a pull request has a unified diff of all its files, including the headers that the forge omits", async () => {
  fake.pulls.push({ number: 1, title: "t", head: "same", base: "trunk", state: "open" });
  const diff = await host.diffPullRequest(shop, 1);
  expect(diff?.split("\n").slice(0, 3)).toEqual(["diff --git a/f0 b/f0", "--- a/f0", "+++ b/f0"]);
  expect(diff).toMatch(/\ndiff --git a\/old b\/new\n--- a\/old\n\+\+\+ b\/new\n@@ -1 \+1 @@\n-a\n\+b\n$/);
  expect(await host.diffPullRequest(shop, 2)).toBeUndefined();
});

test("refs are branches, then tags, then full commit ids", async () => {
  const refs = ["agent/run-1", "v1", KNOWN, "f".repeat(40), "absent"];
  expect(await Promise.all(refs.map((ref) => host.commitOf(shop, ref)))).toEqual([
    wanted.headSha,
    "c".repeat(40),
    KNOWN,
    undefined,
    undefined,
  ]);
  await expect(host.commitOf(shop, "a..b")).rejects.toEqual(domainError({ reason: "branch_invalid" }));
});

test("repositories have their default branch and branches; absent repositories are not found", async () => {
  expect(await host.defaultBranch(shop)).toBe("trunk");
  expect(await host.branchSha(shop, "agent/run-1")).toBe(wanted.headSha);
  expect(await host.branchSha(shop, "absent")).toBeUndefined();
  await expect(host.defaultBranch({ owner: "acme", repo: "absent" })).rejects.toEqual(
    domainError({ reason: "repository_not_found" }),
  );
});

test("returns chosen files of the default branch, without links, directories and files that are too long", async () => {
  const read = async (filesMax: number) =>
    (await host.readFiles(shop, { wants: (path) => path.startsWith("skills"), filesMax, fileBytesMax: 100 })).map(
      ({ path, content }) => [path, Buffer.from(content).toString()],
    );
  expect(await read(9)).toEqual([]); // the repository has no commits
  const entries: [path: string, mode: string, size?: number][] = [
    ["skills", "040000"],
    ["skills/a.md", "100644", 10],
    ["skills/b.md", "100755", 100],
    ["skills/link", "120000", 10],
    ["skills/long", "100644", 101],
    ["other.md", "100644", 1],
  ];
  fake.tree = entries.map(([path, mode, size], index) => ({
    path,
    mode,
    sha: String(index).repeat(40),
    size,
  }));
  expect([await read(9), await read(1)]).toEqual([
    [
      ["skills/a.md", "content of skills/a.md"],
      ["skills/b.md", "content of skills/b.md"],
    ],
    [["skills/a.md", "content of skills/a.md"]],
  ]);
  fake.tree = undefined;
});

test.each([
  [
    { status: 401 },
    { kind: "unauthenticated", reason: "code_host_unauthorized", code: "external_authentication_required" },
  ],
  [{ status: 403 }, { kind: "permission_denied", reason: "code_host_forbidden" }],
  [
    { status: 403, headers: { "x-ratelimit-remaining": "0" } },
    { kind: "rate_limited", reason: "code_host_rate_limited" },
  ],
  [
    { status: 429, headers: { "retry-after": "7" } },
    { kind: "rate_limited", reason: "code_host_rate_limited", retryAfterSeconds: 7 },
  ],
  [{ status: 502 }, { kind: "unavailable", reason: "code_host_unavailable" }],
  [
    { status: 200, body: ["unexpected"] },
    { kind: "unavailable", reason: "code_host_unavailable" },
  ],
] as [Answer, object][])("the error %j is translated into our error", async (refuse, expected) => {
  fake.refuse = refuse;
  await expect(host.defaultBranch(shop)).rejects.toEqual(domainError(expected));
});

test("an absent host is unavailable, and the credential appears nowhere", async () => {
  const nowhere = githubHost({
    baseUrl: "http://127.0.0.1:1",
    token: "hunter2",
    fetch: () => Promise.reject(new TypeError("fetch failed")),
  });
  const error = await nowhere.defaultBranch(shop).catch((e: unknown) => e);
  expect(error).toEqual(domainError({ kind: "unavailable", reason: "code_host_unavailable" }));
  expect(JSON.stringify(error)).not.toContain("hunter2");
});

test.each([
  ["https://api.github.com", "https://github.com/acme/shop.git"],
  ["https://github.example.com/api/v3", "https://github.example.com/acme/shop.git"],
])("below the API %s repositories are cloned from %s", (baseUrl, url) =>
  expect(githubHost({ baseUrl, token: "t" }).cloneUrl(shop)).toBe(url),
);

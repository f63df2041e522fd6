import { expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { forgeReader, type ForgeRead } from "../src/index.ts";

const DATE = "Fri, 20 Nov 2026 10:00:00 GMT";
type Seen = { url: string; headers: Headers };

/** A reader whose forge answers as given, and what it was asked. */
function reading(kind: "github" | "gitlab", status: number, headers: Record<string, string>, body: unknown = []) {
  const seen: Seen[] = [];
  const read = forgeReader({
    kind,
    baseUrl: "https://forge.test/api/",
    token: "t0ken",
    fetch: async (input, init) => {
      seen.push({ url: new Request(input).url, headers: new Headers(init?.headers) });
      const text = status === 304 ? null : JSON.stringify(body);
      return new Response(text, { status, headers: { date: DATE, ...headers } });
    },
  });
  return { read: (over: Partial<ForgeRead>) => read({ ...READ, ...over }), seen };
}
const READ: ForgeRead = {
  repository: { owner: "acme", repo: "shop" },
  resource: "pull_request",
  number: 7,
  page: "",
  etag: "",
};

test.each<["github" | "gitlab", Partial<ForgeRead>, string]>([
  ["github", {}, "/repos/acme/shop/pulls/7"],
  ["github", { resource: "reviews" }, "/repos/acme/shop/pulls/7/reviews?per_page=100"],
  ["github", { resource: "events", page: "page=2" }, "/repos/acme/shop/issues/7/events?per_page=100&page=2"],
  [
    "github",
    { resource: "pushes", branch: "a b/c".replace(" ", "-"), page: "after=MQ%3D%3D" },
    "/repos/acme/shop/activity?ref=refs%2Fheads%2Fa-b%2Fc&per_page=100&after=MQ%3D%3D",
  ],
  [
    "github",
    { resource: "pull_requests", changedSince: new Date("2026-11-20T09:00:00Z") },
    "/repos/acme/shop/issues?state=all&sort=updated&direction=asc&since=2026-11-20T09%3A00%3A00.000Z&per_page=100",
  ],
  [
    "gitlab",
    { repository: { owner: "group/sub", repo: "shop" }, resource: "comments" },
    "/projects/group%2Fsub%2Fshop/merge_requests/7/notes?order_by=created_at&sort=desc&per_page=100",
  ],
])("%s: %j is read at its path, with the token and the ETag", async (kind, over, path) => {
  const { read, seen } = reading(kind, 200, { etag: '"new"' });
  expect(await read({ ...over, etag: '"old"' })).toMatchObject({ outcome: "found", etag: '"new"' });
  expect(seen[0]!.url).toBe(`https://forge.test/api${path}`);
  expect([seen[0]!.headers.get("if-none-match"), seen[0]!.headers.get("authorization")]).toEqual([
    '"old"',
    "Bearer t0ken",
  ]);
});

test("what has not changed has no body; what is absent is not found", async () => {
  const unchanged = await reading("github", 304, {}).read({ etag: '"old"' });
  expect(unchanged).toMatchObject({ outcome: "not_modified", body: undefined, etag: '"old"' });
  expect(await reading("github", 404, {}).read({})).toMatchObject({ outcome: "not_found" });
});

test("names the next page without its address, and the time of the forge", async () => {
  const link = '<https://elsewhere.test/x?per_page=100&page=2>; rel="next", <https://forge.test/x?page=9>; rel="last"';
  expect(await reading("github", 200, { link }).read({})).toMatchObject({
    nextPage: "page=2",
    answeredAt: new Date(DATE),
  });
});

test("cuts long texts", async () => {
  const { body } = await reading("github", 200, {}, { body: "x".repeat(5_000), title: "short" }).read({});
  expect(body).toEqual({ body: "x".repeat(1_000), title: "short" });
});

const RESET = String(Date.parse(DATE) / 1000 + 90);
test.each<[string, number, Record<string, string>, number]>([
  ["Retry-After in seconds", 429, { "retry-after": "17" }, 17],
  ["Retry-After as a date", 429, { "retry-after": "Fri, 20 Nov 2026 10:00:30 GMT" }, 30],
  [
    "GitHub's reset",
    403,
    { "x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": RESET },
    90,
  ],
  ["GitLab's reset", 429, { "ratelimit-limit": "60", "ratelimit-remaining": "0", "ratelimit-reset": RESET }, 90],
  ["nothing", 429, {}, 60],
])("a rate limit with %s returns how long to wait", async (_, status, headers, seconds) => {
  expect(await reading("github", status, headers).read({})).toMatchObject({
    outcome: "rate_limited",
    retryAfterSeconds: seconds,
  });
});

test.each<[string, Partial<ForgeRead>, string]>([
  ["a number below 1", { number: 0 }, "resource_invalid"],
  ["a page that leads elsewhere", { resource: "reviews", page: "page=2&x=y" }, "resource_invalid"],
  ["a list without a time", { resource: "pull_requests" }, "resource_invalid"],
  ["a repository outside its path", { repository: { owner: "..", repo: "x" } }, "repository_invalid"],
])("%s is rejected without a request to the forge", async (_, over, reason) => {
  const { read, seen } = reading("github", 200, {});
  await expect(read(over)).rejects.toEqual(domainError({ reason }));
  expect(seen).toEqual([]);
});

test("a refused credential is an error", async () => {
  await expect(reading("github", 401, {}).read({})).rejects.toEqual(domainError({ reason: "code_host_unauthorized" }));
});

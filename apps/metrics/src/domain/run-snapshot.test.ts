import { expect, test } from "@jest/globals";
import { nextReadAt, toProducedPullRequest } from "./run-snapshot.ts";

const NOW = new Date("2026-11-20T10:00:00.000Z");
const after = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

test.each([
  ["in progress: in a minute", "INPROGRESS", undefined, 1, after(60)],
  ["blocked: in a minute", "BLOCKED", undefined, 1, after(60)],
  ["in progress, with waits divided by 60: in a second", "INPROGRESS", undefined, 60, after(1)],
  ["queued: with its next event", "QUEUED", undefined, 1, undefined],
  ["just ended: two minutes after its end", "SUCCEEDED", after(-10), 1, after(110)],
  ["ended two minutes ago: never", "SUCCEEDED", after(-120), 1, undefined],
])("reads a run again, %s", (_, state, finishedAt, timeScale, expected) =>
  expect(nextReadAt({ state, finishedAt }, NOW, timeScale)).toEqual(expected),
);

const reported = { url: "", codeHostKind: "", repository: "", number: 0, title: "", createdAt: NOW };

test.each([
  ["https://github.com/Acme/Shop/pull/7", { provider: "GITHUB", repoFullName: "Acme/Shop", number: 7 }],
  [
    "https://git.acme.test/group/sub/repo/-/merge_requests/12/diffs",
    { provider: "GITLAB", repoFullName: "group/sub/repo", number: 12 },
  ],
  ["https://git.acme.test/somewhere/else", { provider: "GITHUB", repoFullName: "", number: 0 }],
])("takes from its URL what a run does not know of a pull request: %s", (url, expected) =>
  expect(toProducedPullRequest({ ...reported, url })).toMatchObject(expected),
);

test("prefers what the run knows", () => {
  const known = {
    codeHostKind: "local",
    repository: "acme/shop",
    number: 3,
    url: "https://millwright.test/x/y/pull/9",
  };
  expect(toProducedPullRequest({ ...reported, ...known })).toMatchObject({
    provider: "LOCAL",
    repoFullName: "acme/shop",
    number: 3,
  });
});

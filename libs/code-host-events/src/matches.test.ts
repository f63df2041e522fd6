import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { codeHostEventsOf } from "./code-host-events.ts";
import type { CodeHostEvent } from "./event.ts";
import { globMatches } from "./glob.ts";
import { matches } from "./matches.ts";
import { mentionsIn } from "./mentions.ts";
import { branchPushOf } from "./push.ts";
import { repositoryAddress } from "./repository-address.ts";

const event: CodeHostEvent = {
  provider: "github",
  event: "push",
  repository: "Acme/Shop",
  carried: {},
  unresolved: [],
  pullRequests: [],
  items: [],
  actor: { login: "ada", isPlatform: false },
  subject: { kind: "push", url: "", title: "" },
  attributes: {
    repos: ["Acme/Shop"],
    branches: ["feature/x"],
    paths: ["api/v1/a.ts", "README.md"],
    labels: ["Bug", "api"],
    authors: ["Ada"],
    mentioned: ["ada", "acme/core"],
    workflows: ["CI"],
  },
};
type Filter = Record<string, { in?: string[]; not_in?: string[] }>;
const take = (filter: Filter, of: CodeHostEvent = event): boolean =>
  matches({ provider: "github", event: "push", filter }, of).matches;

describe("a trigger matches an event", () => {
  test("of its own provider and name only", () => {
    const verdict = (provider: string, name: string) => matches({ provider, event: name, filter: {} }, event);
    expect([
      verdict("github", "push").matches,
      verdict("github", "issue_created").matches,
      verdict("gitlab", "push").matches,
    ]).toEqual([true, false, false]);
    expect(verdict("gitlab", "push").checks).toEqual([
      { key: "event", passed: false, detail: "It is github push; the trigger matches gitlab push." },
    ]);
  });
  test("when every key matches, by any of its values", () => {
    expect(take({ branches: { in: ["main", "feature/x"] }, labels: { in: ["api"] } })).toBe(true);
    expect(take({ branches: { in: ["feature/x"] }, labels: { in: ["docs"] } })).toBe(false);
  });
  test("when none of not_in is present, not even next to a wanted one", () => {
    expect([
      take({ labels: { not_in: ["docs"] } }),
      take({ labels: { not_in: ["docs", "bug"] } }),
      take({ labels: { in: ["api"], not_in: ["bug"] } }),
    ]).toEqual([true, false, false]);
  });
  test("with an empty or absent set, for any value", () => {
    expect([
      take({}),
      take({ labels: {} }),
      take({ labels: { in: [] } }),
      take({ labels: { in: [], not_in: [] } }),
      take({ conclusions: { in: [] } }),
    ]).toEqual([true, true, true, true, true]);
  });
  test("without values of an attribute: in fails, not_in matches", () => {
    expect([take({ conclusions: { in: ["success"] } }), take({ conclusions: { not_in: ["success"] } })]).toEqual([
      false,
      true,
    ]);
  });
  test("comparing names case-insensitively, but branches, paths and workflows case-sensitively", () => {
    expect([
      take({ repos: { in: ["acme/shop"] } }),
      take({ labels: { in: ["BUG"] } }),
      take({ authors: { in: ["ada"] } }),
      take({ mentioned: { in: ["@Ada"] } }),
      take({ mentioned: { in: ["Acme/core"] } }),
    ]).toEqual([true, true, true, true, true]);
    expect([
      take({ branches: { in: ["Feature/x"] } }),
      take({ paths: { in: ["readme.md"] } }),
      take({ workflows: { in: ["ci"] } }),
    ]).toEqual([false, false, false]);
  });
  test("with patterns for branches and paths only", () => {
    expect([
      take({ branches: { in: ["feature/*"] } }),
      take({ paths: { in: ["api/**"] } }),
      take({ paths: { not_in: ["docs/**"] } }),
      take({ paths: { not_in: ["*.md"] } }),
    ]).toEqual([true, true, true, false]);
    expect(take({ repos: { in: ["acme/*"] } })).toBe(false);
  });
  test("by the number of the pull request, or of several", () => {
    const of = { ...event, attributes: { ...event.attributes, pr_numbers: ["12", "13"] } };
    expect([
      take({ pr_numbers: { in: ["13"] } }, of),
      take({ pr_numbers: { in: ["1"] } }, of),
      take({ pr_numbers: { not_in: ["12"] } }, of),
    ]).toEqual([true, false, false]);
  });
  test("only with the code host's data, when a filter needs it", () => {
    const unresolved = { ...event, unresolved: ["paths" as const], attributes: { repos: ["acme/shop"] } };
    expect([
      take({}, unresolved),
      take({ paths: { in: [] } }, unresolved),
      take({ paths: { not_in: ["x"] } }, unresolved),
    ]).toEqual([true, true, false]);
  });
  test("with an explanation for every key", () => {
    const { checks } = matches(
      {
        provider: "github",
        event: "push",
        filter: { branches: { in: ["main"] }, labels: { not_in: ["bug"] }, repos: { in: ["acme/shop"] } },
      },
      event,
    );
    expect(checks).toEqual([
      { key: "event", passed: true, detail: "It is github push; the trigger matches github push." },
      { key: "actor", passed: true, detail: "Done by ada." },
      { key: "branches", passed: false, detail: "[feature/x] has none of [main]." },
      { key: "labels", passed: false, detail: "[Bug, api] has bug, which not_in names." },
      { key: "repos", passed: true, detail: "[Acme/Shop] has acme/shop." },
    ]);
  });
});

test.each([
  ["api/**", "api/v1/a.ts", true],
  ["api/**", "api/a.ts", true],
  ["api/**", "apis/a.ts", false],
  ["**/a.ts", "a.ts", true],
  ["**/a.ts", "x/y/a.ts", true],
  ["**", "x/y", true],
  ["*.md", "README.md", true],
  ["*.md", "docs/README.md", false],
  ["docs/*/x", "docs/a/x", true],
  ["docs/*/x", "docs/a/b/x", false],
  ["a/**/b", "a/b", true],
  ["a/**/b", "a/x/y/b", true],
  ["release-?", "release-1", true],
  ["release-?", "release-10", false],
  ["app/[id]/page.tsx", "app/[id]/page.tsx", true],
  ["main", "main2", false],
  ["", "x", false],
  ["f*o*r", "foo-bar", true],
  ["a.b", "axb", false],
])("the pattern %s and the name %s: %s", (pattern, name, expected) =>
  expect(globMatches(pattern, name)).toBe(expected),
);

test("a hostile pattern costs at most pattern length times name length", () => {
  expect(globMatches("*a".repeat(500), "a".repeat(5_000) + "b")).toBe(false);
  expect(globMatches("**/a/".repeat(200), "a/".repeat(2_000) + "b")).toBe(false);
});

test("patterns without wildcards match literally", () => {
  const name = fc.stringMatching(/^[a-z/.-]{1,20}$/);
  fc.assert(fc.property(name, name, (a, b) => expect(globMatches(a, b)).toBe(a === b)));
});

test.each([
  ["@ada and @Bob, @org/team.", ["ada", "bob", "org/team"]],
  ["mail ada@acme.test or see /@x and foo@bar", []],
  ["`@ada` ``a @b`` @carl", ["carl"]],
  ["```\n@ada\n```\n@bob", ["bob"]],
  ["~~~~\n@ada\n~~~\n@x\n~~~~\n@bob", ["bob"]],
  ["@ada @ada @ADA", ["ada"]],
  ['(@ada) "@bob" >@carl', ["ada", "bob", "carl"]],
  ["@", []],
  ["@dot.name_x-", ["dot.name_x"]],
])("finds the mentions in %j: %j", (text, expected) => expect(mentionsIn(text)).toEqual(expected));

test.each([
  ["https://github.com/Acme/Shop.git", "github.com/acme/shop"],
  ["https://user:token@github.com/acme/shop/", "github.com/acme/shop"],
  ["git@github.com:acme/shop.git", "github.com/acme/shop"],
  ["ssh://git@gitlab.test:2222/group/sub/shop.git", "gitlab.test:2222/group/sub/shop"],
  ["git://github.com/acme/shop.git", "github.com/acme/shop"],
  ["http://localhost:3000/a/b", "localhost:3000/a/b"],
  ["/srv/git/acme/shop.git", undefined],
  ["file:///srv/git/acme/shop.git", undefined],
  ["https://github.com/acme", undefined],
  ["", undefined],
  ["not an address", undefined],
])("normalises the repository address %s to %s", (url, address) => expect(repositoryAddress(url)).toBe(address));

test("reading an arbitrary payload never throws", () => {
  const shapes = [
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "check_suite",
    "check_run",
    "workflow_run",
    "constructor",
    "__proto__",
  ];
  const members = fc.dictionary(
    fc.constantFrom(
      "action",
      "repository",
      "full_name",
      "issue",
      "pull_request",
      "labels",
      "commits",
      "ref",
      "comment",
      "body",
      "changes",
      "check_suite",
      "pull_requests",
      "object_kind",
      "object_attributes",
      "project",
    ),
    fc.jsonValue(),
    { maxKeys: 8 },
  );
  const payload = fc
    .tuple(members, fc.constantFrom("opened", "labeled", "created", "edited", "completed", "constructor"))
    .map(([rest, action]) => ({
      ...rest,
      action,
      repository: { full_name: "a/b" },
      project: { path_with_namespace: "a/b" },
      object_kind: "merge_request",
    }));
  fc.assert(
    fc.property(
      fc.constantFrom("github", "gitlab", "other"),
      fc.constantFrom(...shapes),
      fc.oneof(payload, fc.jsonValue(), fc.string()),
      (provider, name, value) => {
        const delivery = {
          provider,
          headers: { "x-github-event": name },
          body: Buffer.from(typeof value === "string" ? value : JSON.stringify(value)),
          botLogin: "b",
        };
        expect(codeHostEventsOf(delivery)).toBeInstanceOf(Array);
        expect(() => branchPushOf(delivery)).not.toThrow();
      },
    ),
    { numRuns: 500 },
  );
});

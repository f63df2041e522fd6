import { describe, expect, test } from "@jest/globals";
import type { DomainError } from "@millwright/errors";
import { checkCodeHost, codeHostFor, type NewCodeHost } from "./code-host.ts";

const asked = (over: Partial<NewCodeHost>): NewCodeHost => ({
  name: "n",
  kind: "local",
  baseUrl: "",
  root: "/srv/git",
  secretName: "",
  owners: [],
  ...over,
});

describe("the root of a local connection", () => {
  test.each([
    ["/srv/git", true],
    ["/srv/git/team", true],
    ["/srv/git/../git/x", true],
    ["/srv/gitx", false],
    ["/srv", false],
    ["/srv/git/../../etc", false],
    ["relative", false],
    ["", false],
  ])("%j within /srv/git: %s", (root, allowed) => {
    const outcome = () => {
      try {
        return checkCodeHost(asked({ root }), ["/srv/git"]).root.startsWith("/srv/git");
      } catch (error) {
        return (error as DomainError).reason;
      }
    };
    expect(outcome()).toBe(allowed || "code_host_root_not_allowed");
  });
  test("is rejected if the operator allows no directory", () =>
    expect(() => checkCodeHost(asked({}), [])).toThrow(
      expect.objectContaining({ reason: "code_host_root_not_allowed" }),
    ));
});

test.each([
  [{ kind: "github", baseUrl: "" }, "https://api.github.com"],
  [{ kind: "gitlab", baseUrl: "" }, "https://gitlab.com/api/v4"],
  [{ kind: "github", baseUrl: "http://127.0.0.1:9/api/" }, "http://127.0.0.1:9/api"],
] as const)("%j has the base URL %s", (over, baseUrl) => expect(checkCodeHost(asked(over), []).baseUrl).toBe(baseUrl));

test.each([
  { name: " " },
  { kind: "svn" as never },
  { kind: "github", baseUrl: "ftp://x" },
  { kind: "github", baseUrl: "https://u:p@x" },
] as const)("%j is refused", (over) =>
  expect(() => checkCodeHost(asked(over), ["/"])).toThrow(expect.objectContaining({ reason: "code_host_invalid" })),
);

describe("an owner is served by", () => {
  const hosts = [
    { name: "b-any", owners: [] },
    { name: "a-any", owners: [] },
    { name: "z", owners: ["Acme", "other"] },
  ];
  test.each([
    ["acme", "z"],
    ["stranger", "a-any"],
  ])("%s: %s", (owner, name) => expect(codeHostFor(hosts, owner)?.name).toBe(name));
  test("no connection if all connections name other owners", () =>
    expect(codeHostFor([hosts[2]!], "stranger")).toBeUndefined());
});

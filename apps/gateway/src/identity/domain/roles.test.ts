import { describe, expect, test } from "@jest/globals";
import { VERBS } from "@millwright/caller";
import { AGENT_VERBS, ROLE_VERBS, withinScopes } from "./roles.ts";

describe("each role has exactly the verbs of the matrix", () => {
  const MATRIX: Record<string, string> = {
    "factory.view": "viewer member admin owner",
    "run.view": "viewer member admin owner",
    "run.create": "member admin owner",
    "run.manage": "member admin owner",
    "task.manage": "member admin owner",
    "artifact.manage": "member admin owner",
    "schedule.manage": "member admin owner",
    "factory.manage": "admin owner",
    "source.apply": "admin owner",
    "agent.manage": "admin owner",
    "webhook.manage": "admin owner",
    "secret.manage": "admin owner",
    "team.manage": "owner",
  };
  test.each(VERBS)("%s", (verb) => {
    const roles = (["viewer", "member", "admin", "owner"] as const).filter((role) => ROLE_VERBS[role].includes(verb));
    expect(roles.join(" ")).toBe(MATRIX[verb]);
  });
});

test("an agent has exactly the verbs of a member", () => expect(AGENT_VERBS).toEqual(ROLE_VERBS.member));

test("scopes narrow and never add", () => {
  expect(withinScopes(ROLE_VERBS.viewer, ["run.view", "team.manage"])).toEqual(["run.view"]);
  expect(withinScopes(ROLE_VERBS.viewer, [])).toEqual(ROLE_VERBS.viewer);
});

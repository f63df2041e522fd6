import { describe, expect, test } from "@jest/globals";
import type { TeamUid } from "@millwright/ids";
import {
  actorOf,
  can,
  chooseTeam,
  isMember,
  requireVerb,
  serviceCaller,
  teamsInView,
  teamsWith,
  type Caller,
} from "./index.ts";

const RED = "red" as TeamUid;
const BLUE = "blue" as TeamUid;
const caller = (over: Partial<Caller> = {}): Caller => ({
  principal: { type: "user", uid: "u1" },
  teams: [
    { teamUid: RED, verbs: ["run.view", "run.create"] },
    { teamUid: BLUE, verbs: ["run.view"] },
  ],
  platformAdmin: false,
  requestId: "r1",
  ...over,
});

describe("verbs", () => {
  test.each([
    ["red", "run.create", true],
    ["blue", "run.create", false],
    ["green", "run.view", false],
  ] as const)("in team %s, %s: %s", (team, verb, expected) => expect(can(caller(), team, verb)).toBe(expected));

  test("give nothing to a platform administrator inside a foreign team", () =>
    expect([
      isMember(caller({ platformAdmin: true }), "green"),
      can(caller({ platformAdmin: true }), "green", "run.view"),
    ]).toEqual([false, false]));

  test("scope finders to the teams that have the verb", () => {
    expect(teamsWith(caller(), "run.view")).toEqual([RED, BLUE]);
    expect(teamsWith(caller(), "run.create")).toEqual([RED]);
  });

  test.each([
    [undefined, [RED, BLUE]],
    [BLUE, [BLUE]],
    ["green" as TeamUid, []],
  ])("with active team %s a list shows %j", (activeTeamUid, expected) =>
    expect(teamsInView(caller(activeTeamUid ? { activeTeamUid } : {}), "run.view")).toEqual(expected),
  );
});

describe("requiring a verb", () => {
  test("hides the resource from callers outside the team", () =>
    expect(() => requireVerb(caller(), "green", "run.view", "run")).toThrow(
      expect.objectContaining({ kind: "not_found", reason: "run_not_found" }),
    ));
  test("reports the missing verb to a member", () =>
    expect(() => requireVerb(caller(), "blue", "run.create", "run")).toThrow(
      expect.objectContaining({ kind: "permission_denied", reason: "not_authorized" }),
    ));
  test("accepts a caller with the verb", () =>
    expect(() => requireVerb(caller(), "red", "run.create", "run")).not.toThrow());
});

describe("choosing the team of a create", () => {
  test.each([
    ["the active team", caller({ activeTeamUid: BLUE }), BLUE],
    ["the only team", caller({ teams: [{ teamUid: RED, verbs: [] }] }), RED],
  ])("accepts %s", (_, who, expected) => expect(chooseTeam(who)).toBe(expected));

  test.each([
    ["several teams and none chosen", caller(), "team_required"],
    ["no team", caller({ teams: [] }), "team_required"],
    ["a foreign active team", caller({ activeTeamUid: "green" as TeamUid }), "team_not_found"],
  ])("rejects %s", (_, who, reason) => expect(() => chooseTeam(who)).toThrow(expect.objectContaining({ reason })));
});

test("an actor is the principal a service acts for, else the caller itself", () => {
  const user = { type: "user", uid: "u1" } as const;
  expect(actorOf(serviceCaller("factories", "r1", user))).toBe(user);
  expect(actorOf(serviceCaller("factories", "r1"))).toEqual({ type: "service", uid: "factories" });
});

import { describe, expect, test } from "@jest/globals";
import { chooseSkills, offeredSkills } from "./choose-skills.ts";
import type { Skill } from "./definition-part.ts";

const aSkill = (path: string, over: Partial<Skill> = {}): Skill => ({
  path,
  name: "s",
  agent: "",
  description: "",
  body: path,
  error: "",
  ...over,
});
const AVAILABLE = [
  aSkill("skills/s/SKILL.md"),
  aSkill("agents/a/skills/s/SKILL.md", { agent: "a" }),
  aSkill("agents/b/skills/only-b/SKILL.md", { agent: "b", name: "only-b" }),
  aSkill("skills/broken/SKILL.md", { name: "broken", error: "no description" }),
];
const paths = (agent: string, names: string[], isRequested = true) =>
  chooseSkills(AVAILABLE, agent, names, isRequested).map(({ path }) => path);

describe("a name means", () => {
  test.each([
    ["the agent's own skill before a shared one", "a", ["s"], ["agents/a/skills/s/SKILL.md"]],
    ["the shared skill for another agent", "b", ["s"], ["skills/s/SKILL.md"]],
    ["exactly the path", "a", ["skills/s/SKILL.md"], ["skills/s/SKILL.md"]],
    [
      "each skill once, in the order asked",
      "b",
      ["only-b", "s", "only-b"],
      ["agents/b/skills/only-b/SKILL.md", "skills/s/SKILL.md"],
    ],
  ])("%s", (_, agent, names, expected) => expect(paths(agent, names)).toEqual(expected));
});

test.each([
  ["another agent's skill", "only-b", "skill_not_found"],
  ["an unknown one", "nope", "skill_not_found"],
  ["a broken one", "broken", "skill_malformed"],
])("a request cannot name %s; an agent's list may", (_, name, reason) => {
  expect(() => paths("a", [name])).toThrow(expect.objectContaining({ reason }));
  expect(paths("a", [name, "s"], false)).toEqual(["agents/a/skills/s/SKILL.md"]);
});

test("offers the chosen skills, then the agent's own and shared ones, without malformed ones", () => {
  const offered = (agent: string, chosen: Skill[] = []) =>
    offeredSkills(AVAILABLE, agent, chosen).map(({ path }) => path);
  expect(offered("a")).toEqual(["agents/a/skills/s/SKILL.md"]);
  expect(offered("b")).toEqual(["agents/b/skills/only-b/SKILL.md", "skills/s/SKILL.md"]);
  expect(offered("b", [AVAILABLE[0]!])).toEqual(["skills/s/SKILL.md", "agents/b/skills/only-b/SKILL.md"]);
});

import { expect, test } from "@jest/globals";
import { parseDefinition, RESOURCE_KINDS, type Definition, type ResourceKind } from "@millwright/definition";
import { completePlan, readPlanItem, verbsFor, type PlanItem } from "./plan.ts";

const TREE = {
  "factory.yaml": "schemaVersion: v1alpha1\nname: Works\nrepositories: []\nagentDefaults: {model: auto}\n",
  "agents/foreman/agent.md": "---\nagentType: FOREMAN\n---\nWork.\n",
};
const HOOK = { "webhooks/ci.yaml": "secretName: S\n" };
const SCORER = (name: string) => ({
  "scorers/tidy/scorer.md": `---\nname: ${name}\nagents: '*'\nlabels: [{value: a, score: 1}, {value: b, score: 0}]\npassingScore: 0.5\nmodel: auto\n---\nJudge.\n`,
});
const definition = (more: Record<string, string>): Definition =>
  parseDefinition(Object.entries({ ...TREE, ...more }).map(([path, content]) => ({ path, content }))).definition!;
const lines = (before: Definition | undefined, after: Definition) =>
  completePlan([], before, after).map(({ kind, name, action, changedFields }) =>
    [action, kind, name, ...changedFields].join(" "),
  );

test("the plan contains resources of which no owner reports changes, field by field", () => {
  expect(lines(undefined, definition({ ...HOOK, ...SCORER("Tidy") }))).toEqual([
    "create scorer tidy",
    "create webhook ci",
  ]);
  const before = definition({ ...HOOK, ...SCORER("Tidy") });
  expect(
    lines(before, definition({ "webhooks/ci.yaml": "secretName: T\nenabled: false\n", ...SCORER("Tidy") })),
  ).toEqual(["unchanged scorer tidy", "update webhook ci enabled secret_name"]);
  expect(lines(before, definition(SCORER("Neat")))).toEqual(["update scorer tidy name", "delete webhook ci"]);
});

test("a version from before a kind existed plans its resources as new", () => {
  const { automations: _, webhooks: __, scorers: ___, benchmarks: ____, ...old } = definition({});
  expect(lines(old as Definition, definition(HOOK))).toEqual(["create webhook ci"]);
});

test("an owner's item and a derived one for the same resource are merged", () => {
  const plan: PlanItem[] = [{ kind: "webhook", name: "ci", action: "create", changedFields: ["x"] }];
  expect(completePlan(plan, undefined, definition(HOOK))).toEqual(plan);
});

test("an apply requires the right of every kind of resource that its plan changes", () => {
  const touching = (kind: ResourceKind, action: string): PlanItem => ({ kind, name: "x", action, changedFields: [] });
  for (const action of ["create", "update", "delete"]) {
    expect(verbsFor([touching("webhook", action), touching("agent", "unchanged")])).toEqual(["webhook.manage"]);
    expect(verbsFor([touching("agent", action), touching("webhook", action), touching("skill", action)])).toEqual([
      "agent.manage",
      "webhook.manage",
      "factory.manage",
    ]);
  }
  expect(RESOURCE_KINDS.filter((kind) => verbsFor([touching(kind, "update")]).length !== 1)).toEqual([]);
});

test("a plan item of an unknown kind is rejected, because its right is unknown", () => {
  const item = { kind: "vault", name: "x", action: "create", changedFields: [] };
  expect(() => readPlanItem(item)).toThrow(expect.objectContaining({ reason: "resource_kind_unknown" }));
});

import { expect, test } from "@jest/globals";
import { parseDefinition } from "../src/index.ts";
import { filesOf, VALID } from "./marked-tree.ts";

const AUTOMATION =
  "---\nagent: nobody\nrunner: nowhere\nmodel: m\ntriggers: [{provider: github, event: push}]\n---\nGo.\n";
const parse = (changes: Record<string, string>) => parseDefinition(filesOf({ ...VALID, ...changes }));

test("a tree with errors has a draft of its readable part, for further checks", () => {
  const { definition, draft } = parse({
    "agents/hand/agent.md": "---\ncolour: red\nmodel: m\nsecrets: [S]\n---\nDo.\n",
    "automations/nightly/automation.md": AUTOMATION,
    "webhooks/whole.yaml": "colour: red\nsecretName: S\n",
    "webhooks/half.yaml": "authMode: signature\nsecretName: S\n",
  });
  expect(definition).toBeUndefined();
  expect(draft?.agents).toMatchObject([{ name: "foreman" }, { name: "hand", model: "m", secrets: ["S"] }]);
  expect(draft?.automations).toEqual([expect.not.objectContaining({ agent: expect.anything() })]);
  expect(draft?.automations).toMatchObject([{ name: "nightly", model: "m" }]);
  expect(draft?.webhooks.map(({ name }) => name)).toEqual(["whole"]);
});

test("a valid tree has no draft, and a tree without a readable factory.yaml has a draft", () => {
  expect(parse({}).draft).toBeUndefined();
  expect(parse({ "factory.yaml": "[" }).draft?.agents).toMatchObject([{ name: "foreman" }]);
});

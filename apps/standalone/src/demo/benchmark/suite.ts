import { runnerUidOf } from "@millwright/ids";

/** Runners of `examples/measured-factory`. The first is the baseline. */
const RUNNERS = [
  { role: "baseline", display_name: "with tests", runner: "with-tests" },
  { role: "candidate", display_name: "without tests", runner: "without-tests" },
] as const;
export const REPETITIONS = 4;
/** Text that explains the difference between the configurations. */
export const DIFFERENCE = [
  "Both follow the same scripts (no AI): make the change, run `npm test`, correct the change if the tests fail.",
  "with tests     baseline: the repository's tests are executed",
  "without tests  candidate: the setup of its runner replaces the test command by one that always passes",
  "Each trial is judged by a command on the files that it left, which the trial does not see.",
];
/** Number of trials that pass: two of the three tasks need a correction that only a failing test prompts. */
export const EXPECTED_PASSES = { baseline: 12, candidate: 4 } as const;

const fence = "````";
const scripted = (text: string): string => `${fence}scripted\n${text.trim()}\n${fence}`;

const [TOTAL, FORMAT] = ["src/total.js", "src/format.js"] as const;

/** Returns a rule with one command that imports a module of the repository as `code`. The trial cannot see the rule. */
const rule = (module: string, statements: string) => ({
  checks: [
    {
      kind: "command",
      command: `node --input-type=module -e 'import * as code from ${JSON.stringify(`./${module}`)}; ${statements}'`,
    },
  ],
  pass: "pass",
  fail: "fail",
});

const TASKS = [
  {
    title: "Give the bulk discount from ten items on",
    success_criteria: "Ten items of 100 cents cost 900 cents.",
    rule: rule(TOTAL, "process.exit(code.lineTotal({ unitCents: 100, quantity: 10 }) === 900 ? 0 : 1);"),
    tags: ["correction"],
    script: scripted(`
- edit: {path: src/total.js, old: "quantity > BULK_QUANTITY", new: "quantity >= BULK_QUANTITY + 1"}
- shell: npm test || sed -i "s/BULK_QUANTITY + 1)/BULK_QUANTITY)/" src/total.js
- say: Ten items get the bulk discount.`),
  },
  {
    title: "Refuse quantities below one",
    success_criteria: "lineTotal throws for the quantity 0.",
    rule: rule(
      TOTAL,
      "try { code.lineTotal({ unitCents: 1, quantity: 0 }); process.exit(1); } catch { process.exit(0); }",
    ),
    tags: ["correction"],
    script: scripted(`
- write:
    path: test/quantity.test.js
    content: |
      import assert from "node:assert/strict";
      import { test } from "node:test";
      import { lineTotal } from ${JSON.stringify(`../${TOTAL}`)};
      test("no items cannot be ordered", () => assert.throws(() => lineTotal({ unitCents: 1, quantity: 0 })));
- edit:
    path: src/total.js
    old: "  const full"
    new: |2-
        if (quantity < 0) throw new RangeError("quantity must be at least 1.");
        const full
- shell: npm test -- test/quantity.test.js || sed -i "s/quantity < 0/quantity < 1/" src/total.js
- say: Quantities below one are refused.`),
  },
  {
    title: "Show totals in euros",
    success_criteria: 'formatTotal(1805) returns "18.05 EUR".',
    rule: rule(FORMAT, 'process.exit(code.formatTotal(1805) === "18.05 EUR" ? 0 : 1);'),
    tags: ["first attempt"],
    script: scripted(`
- write:
    path: src/format.js
    content: |
      export const formatTotal = (cents) => (cents / 100).toFixed(2) + " EUR";
- say: Totals are shown in euros.`),
  },
];

/** Returns the body of the request that creates the demo's suite. */
export const suiteOf = (factoryUid: string, agent: { uid: string; name: string }) => ({
  name: "Price list",
  agent_uid: agent.uid,
  factory_agent_type: agent.name,
  configurations: RUNNERS.map(({ runner, ...configuration }) => ({
    ...configuration,
    runner_id: runnerUidOf(factoryUid, runner),
  })),
  tasks: TASKS.map(({ script, ...task }) => ({
    ...task,
    prompt: `${task.title}.\n\n${script}`,
    starting_repo_refs: [{ code_forge: "local", owner: "acme", repo: "price-list" }],
  })),
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "@jest/globals";
import { eventually, ModelServer, type ModelAnswer, type ModelRequest } from "@millwright/testing";
import type { PlannedCall } from "../src/context/platform-client.ts";
import { resultOf } from "../src/harness/result.ts";
import { executionDir, type ContextOptions } from "./support/a-context.ts";
import { during, ends, execute, assistantTexts } from "./support/execute.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { inBubblewrap, withDirectory } from "./support/sandboxes.ts";

const KEY = "canary-provider-key";
const COUNTED = { usage: { input: 100, output: 10 } };
let server: ModelServer;
afterEach(() => server?.stop());

async function aModel(
  responses: readonly ModelAnswer[] | ((request: ModelRequest, index: number) => ModelAnswer),
): Promise<NonNullable<ContextOptions["assignment"]>> {
  server = await ModelServer.start(responses);
  return {
    provider: "anthropic",
    modelId: "claude-sonnet-4-5",
    executionId: 3n,
    providerCredentials: { provider: "anthropic", apiKey: KEY, baseUrl: server.url },
  };
}

inBubblewrap("a model", () => {
  test("works in the sandbox through the same tools, by the rules of the repository, and never sees its own key", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root, {
        "src/total.js": "export const bulk = (n) => n > 10;\n",
        "AGENTS.md": "Compare with care.\n",
      });
      const model = await aModel([
        {
          text: "I fix it.",
          calls: [
            { name: "edit_file", input: { path: "src/total.js", old: "n > 10", new: "n >= 10" } },
            { name: "shell", input: { command: "env; cat src/total.js" } },
          ],
          ...COUNTED,
        },
        {
          calls: [
            { name: "shell", input: { no: "command" } },
            { name: "fly", input: {} },
          ],
          ...COUNTED,
        },
        { calls: [{ name: "pull_request", input: { title: "Compare with at least" } }], ...COUNTED },
        { text: "It is fixed.", ...COUNTED },
      ]);
      const { result, events, usage, pullRequests } = await execute({
        dir: await executionDir(root, "e1"),
        prompt: "Fix it.",
        assignment: { ...model, repositories: [aRepository(bare)] },
      });
      expect(result).toMatchObject({ outcome: "DONE" });
      expect(assistantTexts(events)).toEqual(["I fix it.", "It is fixed."]);
      expect(ends(events).map(({ call_id: id, state }) => [id, state])).toEqual([
        ["e3-a1-c1-0", "completed"],
        ["e3-a1-c1-1", "completed"],
        ["e3-a1-c2-0", "failed"],
        ["e3-a1-c2-1", "failed"],
        ["e3-a1-c3-0", "completed"],
      ]);
      expect((ends(events)[1]!["output"] as { output: string }).output).toContain("n >= 10");
      expect(git(bare, "show", "agent/run-1:src/total.js")).toContain("n >= 10");
      expect(pullRequests).toHaveLength(1);
      expect(usage).toEqual(
        [1, 2, 3, 4].map((call) => ({
          callId: `e3-a1-c${call}`,
          modelId: "claude-sonnet-4-5",
          usage: { inputTokens: 100, outputTokens: 10 },
        })),
      );
      const bodies = server.requests.map(({ body }) => JSON.stringify(body));
      expect(bodies[0]).toContain("Compare with care.");
      expect(bodies[2]).toContain("Unknown tool");
      expect(JSON.stringify([events, bodies])).not.toContain(KEY);
      expect(readFileSync(join(root, "e1", "workspace", "shop", "src", "total.js"), "utf8")).not.toContain(KEY);
    }));

  test("is informed that the arguments of a call were malformed", () =>
    withDirectory(async (root) => {
      const model = await aModel([
        { calls: [{ name: "shell", input: '{"command": "ls' }], ...COUNTED },
        { text: "I see.", ...COUNTED },
      ]);
      const { result, events } = await execute({
        dir: await executionDir(root, "e1"),
        prompt: "Look.",
        assignment: model,
      });
      const error =
        'The arguments of shell are malformed: they must be one JSON object (got "{\\"command\\": \\"ls"). Send the call again.';
      expect([result.outcome, ends(events).map(({ state, output }) => [state, output])]).toEqual([
        "DONE",
        [["failed", { error }]],
      ]);
      expect(JSON.stringify(server.requests[1]!.body)).toContain("The arguments of shell are malformed");
    }));

  test("gets the names of its skills and reads them on demand, from its definition and the repository; the run's own skill is included whole", () =>
    withDirectory(async (root) => {
      const skill = (name: string, text: string) => `---\nname: ${name}\ndescription: About ${name}.\n---\n\n${text}\n`;
      const bare = aBareRepository(root, {
        ".agents/skills/deploy/SKILL.md": skill("deploy", "Deploy softly."),
        ".claude/skills/broken/SKILL.md": "no frontmatter",
      });
      const skills = [
        { name: "fix", description: "Fixes.", body: "Fix it whole.", spec: "skills/fix/SKILL.md", preloaded: true },
        { name: "review", description: "Reviews.", body: "Look closely.", spec: "skills/review/SKILL.md" },
      ];
      const calls = ["review", "deploy", "none"].map((name) => ({ name: "read_skill", input: { name } }));
      const model = await aModel([
        { calls, ...COUNTED },
        { text: "Done.", ...COUNTED },
      ]);
      const { events } = await execute({
        dir: await executionDir(root, "e1"),
        prompt: "",
        assignment: { ...model, skills, repositories: [aRepository(bare)] },
      });
      const [first] = server.requests.map(({ body }) => JSON.stringify(body));
      for (const part of ["Fix it whole.", "- review: Reviews.", "- deploy: About deploy."])
        expect(first).toContain(part);
      for (const part of ["Look closely.", "Deploy softly.", "- fix:"]) expect(first).not.toContain(part);
      expect(
        ends(events).map(({ name, state, output }) => [name, state, (output as { content?: string }).content]),
      ).toEqual([
        ["read_skill", "completed", "Look closely."],
        ["read_skill", "completed", "Deploy softly."],
        ["read_skill", "failed", undefined],
      ]);
    }));

  test("whose context is exceeded gets a summary of the conversation, and continues", () =>
    withDirectory(async (dir) => {
      const tooLong = { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" };
      const model = await aModel([
        { text: "I begin.", calls: [{ name: "shell", input: { command: "echo hello" } }], ...COUNTED },
        tooLong,
        { text: "It began.", ...COUNTED },
        { text: "Done.", ...COUNTED },
      ]);
      const { result, events, usage } = await execute({ dir, prompt: "Work.", assignment: model });
      expect(result).toMatchObject({ outcome: "DONE" });
      expect(events.filter(({ kind }) => kind === "conversation_summarized").map(({ payload }) => payload)).toEqual([
        { summary: "It began.", retained_from: "e3-a1-c1", model_id: "claude-sonnet-4-5", call_id: "e3-a1-c3" },
      ]);
      expect(usage.map(({ callId }) => callId)).toEqual(["e3-a1-c1", "e3-a1-c3", "e3-a1-c4"]);
      expect(JSON.stringify(server.requests[3]!.body)).toContain("It began.");
    }));

  test("that is interrupted while it generates ends its turn; the next message continues", () =>
    withDirectory(async (dir) => {
      const model = await aModel((_request, index) => (index === 0 ? "hang" : { text: "I continue.", ...COUNTED }));
      const { running, events } = await during(
        { dir, prompt: "Think.", assignment: { ...model, idleTimeoutSeconds: 60 } },
        async (context) => {
          await eventually(() => expect(server.requests).toHaveLength(1));
          context.interrupt();
          await eventually(() => expect(context.phases.at(-1)).toBe("IDLE"));
          context.followup({ text: "Continue." });
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect([
        assistantTexts(events),
        events.filter(({ kind }) => kind === "turn_end").map(({ payload }) => payload["outcome"]),
      ]).toEqual([["I continue."], ["interrupted", "done"]]);
    }));

  test("stops before the call for which no tokens remain, including those of earlier executions", () =>
    withDirectory(async (dir) => {
      const model = await aModel([{ calls: [{ name: "shell", input: { command: "true" } }], ...COUNTED }]);
      const history = [
        {
          kind: "usage_recorded",
          payload: { call_id: "e1-a1-c1", input_tokens: 60, output_tokens: 10, input_cache_read_tokens: 50 },
        },
      ];
      const { result } = await execute({ dir, prompt: "Work.", history, assignment: { ...model, tokenLimit: 340n } });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", reason: "token_limit", message: "The run has used 340 of 340 tokens." },
      });
      expect(server.requests).toHaveLength(2);
    }));

  test("under a cost limit reserves before each call, waits if required, and ends when nothing remains", () =>
    withDirectory(async (dir) => {
      const model = await aModel([{ calls: [{ name: "shell", input: { command: "true" } }], ...COUNTED }]);
      const asked: PlannedCall[] = [];
      const outcomes = ["wait", "granted", "exceeded"].map((outcome) => ({
        outcome,
        message: outcome === "exceeded" ? "It has cost $1 of $1." : "",
      }));
      const reserveCost = (call: PlannedCall) => (asked.push(call), outcomes[asked.length - 1]!);
      const { result } = await execute({
        dir,
        prompt: "Work.",
        reserveCost,
        assignment: { ...model, costLimited: true },
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", reason: "cost_limit", message: "It has cost $1 of $1." },
      });
      expect(server.requests).toHaveLength(1);
      expect(asked).toHaveLength(3);
      expect(asked[0]).toEqual({
        modelId: "claude-sonnet-4-5",
        inputTokens: expect.any(Number),
        outputTokens: (server.requests[0]!.body as { max_tokens: number }).max_tokens,
      });
      expect(asked[2]!.inputTokens).toBeGreaterThan(asked[0]!.inputTokens);
    }));

  test("reserves before each call once the response to a usage report states that a budget covers the run", () =>
    withDirectory(async (dir) => {
      const model = await aModel([{ calls: [{ name: "shell", input: { command: "true" } }], ...COUNTED }]);
      const reserveCost = () => ({ outcome: "exceeded", message: "The budget is exhausted." });
      const { result } = await execute({
        dir,
        prompt: "Work.",
        reserveCost,
        isLimitedByReport: true,
        assignment: model,
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", message: "The budget is exhausted." },
      });
      expect(server.requests).toHaveLength(1);
    }));

  test("that is cancelled while it generates ends with the execution", () =>
    withDirectory(async (dir) => {
      const { running } = await during(
        { dir, prompt: "Think.", assignment: await aModel(["hang"]) },
        async (context) => {
          await eventually(() => expect(server.requests).toHaveLength(1));
          context.cancel();
        },
      );
      expect(await running).toMatchObject({ outcome: "CANCELLED" });
    }));
});

test("a worker without a sandbox calls no model unless the operator chose to do without", () =>
  withDirectory(async (dir) => {
    const { result } = await execute({
      dir,
      kind: "none",
      isChosen: false,
      prompt: "Work.",
      assignment: await aModel([{ text: "never" }]),
    });
    expect(result).toMatchObject({ outcome: "BLOCKED", message: expect.stringContaining("no sandbox") });
    expect(server.requests).toEqual([]);
  }));

test("a provider that is no longer configured blocks, and states what to do", () =>
  withDirectory(async (dir) => {
    const { providerCredentials: _, ...model } = await aModel([{ text: "never" }]);
    const { result } = await execute({ dir, prompt: "Work.", assignment: model });
    expect(result).toMatchObject({ outcome: "BLOCKED", message: expect.stringContaining("docs/guides/models.md") });
  }));

test.each([
  ["resource_unavailable", "ERROR"],
  ["external_authentication_required", "FAILED"],
])("a turn that fails with %s ends the execution as %s", (code, outcome) =>
  expect(resultOf({ kind: "failed", failure: { code, message: "m", retryable: true, reason: "r" } })).toMatchObject({
    outcome,
    error: { code },
  }),
);

import { dirname } from "node:path";
import { invalidArgument } from "@millwright/errors";
import { afterEach, expect, test } from "@jest/globals";
import {
  aFakeHarness,
  AGENT_PROGRAMS,
  eventually,
  ModelServer,
  type AgentProgram,
  type ModelAnswer,
  type ModelRequest,
} from "@millwright/testing";
import { bareHost } from "../../src/sandbox/spec.ts";
import { executionDir, type ContextOptions, type Event } from "../support/a-context.ts";
import { execute } from "../support/execute.ts";
import { aBareRepository, aRepository } from "../support/repositories.ts";
import { inBubblewrap, withDirectory } from "../support/sandboxes.ts";

const KEY = "canary-key-of-a-harness";
const USAGE = { usage: { input: 100, output: 10 } };
const DONE: ModelAnswer = { text: "hello", ...USAGE };
let model: ModelServer;
afterEach(() => model.stop());

const lines = (...orders: string[]) => orders.join("\n");
const usageEventOf = (events: readonly Event[]) => events.findLast(({ kind }) => kind === "harness_usage")?.payload;
const textOf = ({ body }: ModelRequest) => JSON.stringify(body);

/** Runs a stand-in with a model server that responds as given. */
async function run(
  program: AgentProgram,
  root: string,
  answer: Parameters<typeof ModelServer.start>[0],
  prompt: string,
  more: ContextOptions["assignment"] = {},
  reserveCost?: ContextOptions["reserveCost"],
) {
  model = await ModelServer.start(answer);
  const { type, provider, path } = program;
  const file = await aFakeHarness(root, type);
  const place = { directory: dirname(file), file: file.slice(dirname(file).length + 1), version: "9.9.9" };
  const providerCredentials = { provider, apiKey: KEY, baseUrl: model.url + path };
  const assignment = {
    harness: type,
    provider,
    modelId: "some-model",
    idleTimeoutSeconds: 60,
    providerCredentials,
    ...more,
  };
  return execute({
    host: { ...bareHost("bwrap"), harnesses: new Map([[type, place]]) },
    dir: await executionDir(root, "e1"),
    prompt,
    assignment,
    reserveCost,
  });
}

for (const program of Object.values(AGENT_PROGRAMS))
  inBubblewrap(`model calls of a third-party harness (${program.type} protocol)`, () => {
    test("aborts the provider request when the harness disconnects, and reports estimated usage", () =>
      withDirectory(async (root) => {
        const answers: ModelAnswer[] = [
          { text: "a long answer", usage: { input: 70, output: 900 }, until: new Promise(() => {}) },
          DONE,
        ];
        const { result, usage, events, modelCalls } = await run(program, root, answers, lines("abort", "model"));
        expect(result.outcome).toBe("DONE");
        await eventually(() => expect(model.abandoned).toHaveLength(1));
        expect(usage.map(({ callId, isEstimated = false }) => [callId, isEstimated])).toEqual([
          ["e1-a1-h1", true],
          ["e1-a1-h2", false],
        ]);
        expect(usage[0]!.usage).toEqual(
          expect.objectContaining({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) }),
        );
        expect(modelCalls).toEqual([`${program.provider} interrupted`, `${program.provider} ok`]);
        expect(usageEventOf(events)).toMatchObject({ missed_turns: 1, lost_turns: 0 });
      }));

    test("that it gives up count for the run's token limit", () =>
      withDirectory(async (root) => {
        const answers: ModelAnswer[] = [
          { text: "a long answer", usage: { input: 70, output: 900 }, until: new Promise(() => {}) },
          DONE,
        ];
        const { result } = await run(program, root, answers, lines("abort", "model", "say never said"), {
          tokenLimit: 1n,
        });
        expect(result).toMatchObject({ outcome: "FAILED", error: { code: "budget_exceeded", reason: "token_limit" } });
        expect(model.requests).toHaveLength(1);
      }));

    test("are made sequentially under a cost limit, each after the usage of the previous one is reported", () =>
      withDirectory(async (root) => {
        const reported: number[] = [];
        const { result, usage } = await run(
          program,
          root,
          [DONE, DONE],
          "pair",
          { costLimited: true },
          (_call, count) => {
            reported.push(count);
            return { outcome: "granted", message: "" };
          },
        );
        expect(result.outcome).toBe("DONE");
        expect([reported, usage.length]).toEqual([[0, 1], 2]);
      }));

    test("of a model without a price are rejected under a cost limit, and end the run with its own cause", () =>
      withDirectory(async (root) => {
        const message = 'The model "some-model" has no price here.';
        const { result } = await run(
          program,
          root,
          [DONE],
          lines("model", "say never said"),
          { costLimited: true },
          () => {
            throw invalidArgument("cost_limit_unpriced", message);
          },
        );
        expect(result).toMatchObject({
          outcome: "FAILED",
          error: { code: "invalid_request", reason: "cost_limit_unpriced", retryable: false, message },
        });
        expect(model.requests).toEqual([]);
      }));

    test("contain no secret of the run", () =>
      withDirectory(async (root) => {
        const secrets = { TOKEN: 'canary-"secret"', ROLE: "user" };
        const { result } = await run(program, root, [DONE], 'model The token is canary-"secret".', { secrets });
        expect(result.outcome).toBe("DONE");
        expect(model.requests.map(textOf)).toEqual([expect.stringContaining("The token is ***.")]);
        expect(model.requests.map(textOf).join("")).not.toContain("canary");
      }));

    test("that are rejected temporarily, and those for titles, are no steps", () =>
      withDirectory(async (root) => {
        const isRefused = (index: number) => index === 0 || index === 1;
        const answer = (_request: ModelRequest, index: number): ModelAnswer =>
          isRefused(index) ? { status: 429, message: "Slow down." } : DONE;
        const { result } = await run(program, root, answer, lines("retry", "title", "title", "model"), {
          stepLimit: 2,
        });
        expect([result.outcome, model.requests.length]).toEqual(["DONE", 6]);
        await model.stop();
        const limited = await run(program, `${root}/again`, [DONE], lines("model", "model", "model"), { stepLimit: 2 });
        expect([limited.result.error?.reason, model.requests.length]).toEqual(["step_limit", 2]);
      }));

    test.each([
      [400, "invalid_request", "model_refused_request"],
      [404, "resource_not_found", "model_not_found"],
    ])("that are rejected with %i end the run with %s", (status, code, reason) =>
      withDirectory(async (root) => {
        const { result } = await run(
          program,
          root,
          [{ status, message: "No such thing." }],
          lines("model", "say never said"),
        );
        const message = `The model provider ${program.provider} refused the call (${status}: No such thing.).`;
        expect(result).toMatchObject({ outcome: "FAILED", error: { code, reason, retryable: false, message } });
      }),
    );

    test("have the rules of each repository", () =>
      withDirectory(async (root) => {
        const bare = aBareRepository(root, { "AGENTS.md": "Compare with care.\n" });
        const { result, events } = await run(program, root, [DONE], "told", { repositories: [aRepository(bare)] });
        expect(result.outcome).toBe("DONE");
        const instructions = events.find(({ kind, payload }) => kind === "message" && payload["role"] === "assistant")!
          .payload["text"];
        expect(instructions).toMatch(/## Rules of the repository \(shop\/AGENTS\.md\)\n\nCompare with care\./);
      }));
  });

inBubblewrap("the usage of a third-party harness", () => {
  test.each([
    ["the provider has not counted a step", lines("model"), [{ text: "hello" }]],
    ["the program has died in the middle of a turn", lines("model", "die"), [DONE]],
  ] as const)("is incomplete if %s", (_why, orders, answers) =>
    withDirectory(async (root) => {
      const { events } = await run(AGENT_PROGRAMS.codex, root, answers, orders);
      expect(usageEventOf(events)).toMatchObject({ missed_turns: 1 });
    }),
  );

  test("counts a turn as missed while it is under way", () =>
    withDirectory(async (root) => {
      const { events } = await run(AGENT_PROGRAMS.claude, root, [DONE], "model");
      const counted = events
        .filter(({ kind }) => kind === "harness_usage")
        .map(({ payload }) => [payload["missed_turns"], payload["lost_turns"], payload["counted"]]);
      expect(counted).toEqual([
        [1, 1, undefined],
        [0, 0, { input_tokens: 1 }],
      ]);
    }));
});

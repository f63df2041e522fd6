import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { aFakeHarness, eventually, ModelServer } from "@millwright/testing";
import { probeHarnesses } from "../../src/adapters/probe-harnesses.ts";
import { bareHost } from "../../src/sandbox/spec.ts";
import { executionDir, snapshotUrl, type ContextOptions, type Event } from "../support/a-context.ts";
import { during, ends, execute } from "../support/execute.ts";
import { aBareRepository, aRepository, git } from "../support/repositories.ts";
import { callBegun, losing, nextAttempt } from "../support/resume.ts";
import { inBubblewrap, markedSeconds, processesLike, withDirectory } from "../support/sandboxes.ts";

/**
 * The end-to-end behavior specific to the Agent Client Protocol. The behavior common to all agent programs is tested in
 * harness.test.ts.
 */
const KEY = "canary-key-of-an-agent";
let model: ModelServer;
beforeEach(async () => {
  model = await ModelServer.start([{ text: "hello", usage: { input: 100, output: 10 } }]);
});
afterEach(() => model.stop());

const assistantTexts = (events: readonly Event[]) =>
  events
    .filter(({ kind, payload }) => kind === "message" && payload["role"] === "assistant")
    .map(({ payload }) => payload["text"]);
const calls = (events: readonly Event[]) =>
  ends(events).map(({ name, state, output }) => [name, state, (output as { output?: string }).output]);
const lines = (...orders: string[]) => orders.join("\n");
const usageOf = (events: readonly Event[]) => events.findLast(({ kind }) => kind === "harness_usage")?.payload;

const GEMINI = {
  type: "gemini",
  provider: "google",
  path: "/v1beta",
  shell: "run_shell_command",
  ask: "ask_people",
  counted: { counted: { input_tokens: 1 }, missed_turns: 0 },
  planModeArguments: /--approval-mode default/,
} as const;
const OPENCODE = {
  type: "opencode",
  provider: "openai-compatible",
  path: "/v1",
  shell: "bash",
  ask: "ask_user",
  counted: { missed_turns: 1 },
  planModeArguments: /"\*":"deny"/,
} as const;

for (const { type, provider, path, shell, ask, counted, planModeArguments } of [GEMINI, OPENCODE]) {
  /** Returns the options of a run of the stand-in, in its own directory. */
  const aRun = async (
    root: string,
    name: string,
    prompt: string,
    assignment: ContextOptions["assignment"] = {},
    more: Partial<ContextOptions> = {},
  ): Promise<ContextOptions> => {
    const program = await aFakeHarness(root, type);
    const host = {
      ...bareHost("bwrap"),
      harnesses: new Map([[type, { directory: dirname(program), file: basename(program), version: "9.9.9" }]]),
    };
    const providerCredentials = { provider, apiKey: KEY, baseUrl: model.url + path };
    return {
      host,
      dir: await executionDir(root, name),
      prompt,
      ...more,
      assignment: {
        harness: type,
        provider,
        modelId: "some-model",
        idleTimeoutSeconds: 60,
        providerCredentials,
        ...assignment,
      },
    };
  };

  inBubblewrap(`a stand-in for ${type}`, () => {
    test("is found with its version, uses the gateway as its model and the platform's tools, and its messages and actions are events of the run", () =>
      withDirectory(async (root) => {
        const { host, warnings } = await probeHarnesses(bareHost("bwrap"), { [type]: await aFakeHarness(root, type) });
        expect([host.harnesses?.get(type)?.version, warnings]).toEqual(["9.9.9", []]);
        const bare = aBareRepository(root, { "a.txt": "one\n" });
        const prompt = lines(
          "tools",
          "bash echo two > a.txt; echo $PWD",
          "model",
          "bash exit 3",
          'tool artifact {"file": "a.txt", "title": "A"}',
          'tool pull_request {"title": "Two"}',
          "bash true",
          "odd Ready?",
          "say I end.",
        );
        const { result, events, artifacts, pullRequests, usage } = await execute(
          await aRun(root, "e1", prompt, { repositories: [aRepository(bare)], runUid: "run-1" }),
        );
        expect(result).toMatchObject({ outcome: "DONE", message: "I end." });
        expect(assistantTexts(events)[0]).toBe(
          `plan artifact screenshot external_reference read_skill pull_request spawn_run wait set_stage ${ask}`,
        );
        expect(assistantTexts(events)[1]).toBe('The model said "hello"');
        expect(calls(events)).toEqual([
          ["run_command", "completed", "/workspace/shop\n"],
          ["run_command", "failed", undefined],
          ["report_artifact", "completed", undefined],
          ["open_pull_request", "completed", undefined],
          ["run_command", "completed", ""],
        ]);
        expect([artifacts.length, pullRequests.length, git(bare, "show", "agent/run-1:a.txt")]).toEqual([1, 1, "two"]);
        expect(model.requests.map(({ key, model: name }) => [key, name])).toEqual([[KEY, "some-model"]]);
        expect(usage).toMatchObject([{ modelId: "some-model", usage: { inputTokens: 100, outputTokens: 10 } }]);
        expect(usageOf(events)).toEqual({
          harness: type,
          lost_turns: 0,
          tool_calls: { [shell]: 3, mcp__millwright__artifact: 1, mcp__millwright__pull_request: 1 },
          ...counted,
        });
        expect(events.filter(({ kind }) => kind === "harness_line").map(({ payload }) => payload["line"])).toEqual([
          expect.stringMatching(/^\{.*"something_new"/),
          "Ready?",
        ]);
        expect(JSON.stringify(events)).not.toContain(KEY);
      }));

    const defaults = OPENCODE.provider === provider ? [["default", "served-model"]] : [];
    for (const [named, served] of defaults) {
      test(`calls the first model of the server when its model is ${named}`, () =>
        withDirectory(async (root) => {
          const { result } = await execute(await aRun(root, "e1", lines("model", "say I end."), { modelId: named! }));
          expect([result.outcome, model.requests.map((request) => request.model)]).toEqual(["DONE", [served]]);
        }));
    }

    test("that asks takes no further step; after the answer it continues the session on another machine, without lost or repeated messages", () =>
      withDirectory(async (root) => {
        const first = await execute(
          await aRun(
            root,
            "e1",
            lines("bash echo saved > saved.txt", `tool ${ask} {"question": "Which name?"}`, "model"),
          ),
        );
        expect(first.result).toMatchObject({ outcome: "BLOCKED", message: "Which name?" });
        expect([model.requests, assistantTexts(first.events)]).toEqual([[], []]);
        const second = await execute(
          await aRun(
            root,
            "e2",
            lines("heard Ada", "bash cat saved.txt"),
            { executionSeq: 2, snapshotUrl: snapshotUrl(join(root, "e1")) },
            { history: first.history() },
          ),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(assistantTexts(second.events)).toEqual(['I heard "heard Ada\\nbash cat saved.txt" after 1 earlier.']);
        expect(calls(second.events)).toEqual([["run_command", "completed", "saved\n"]]);
      }));

    test("accepts a message during a tool call, and one during its model's response, in the same process and session", () =>
      withDirectory(async (root) => {
        await model.stop();
        const answer = { text: "never heard", until: new Promise<void>(() => {}) };
        model = await ModelServer.start([answer]);
        const { running, events } = await during(
          await aRun(root, "e1", lines("bash echo $PPID", "hang", "say never said")),
          async (context) => {
            await eventually(() => expect(context.events.filter(({ kind }) => kind === "tool_start")).toHaveLength(2));
            context.followup({ text: lines("bash echo $PPID", "model", "hang") });
            await eventually(() => expect(model.requests).toHaveLength(1));
            context.followup({ text: lines("heard News", "bash echo $PPID") });
          },
        );
        expect((await running).outcome).toBe("DONE");
        const [first, hung, second, ...rest] = calls(events);
        expect(hung).toEqual(["run_command", "interrupted", undefined]);
        expect([second, rest.at(-1)]).toEqual([first, first]);
        expect(assistantTexts(events)).toEqual([expect.stringMatching(/heard News/)]);
      }));

    test("whose worker is lost resumes on another worker from the last saved state", () =>
      withDirectory(async (root) => {
        const lost = await losing(
          await aRun(root, "e1", lines("bash echo saved > saved.txt", "hang")),
          async (context) => {
            await callBegun(2)(context);
            await eventually(() => expect(context.events.map(({ kind }) => kind)).toContain("checkpoint"));
          },
        );
        const next = nextAttempt(lost, await aRun(root, "e2", ""));
        const inputs = [
          { uid: newUid(), text: lines("heard Back", "bash cat saved.txt"), kind: "followup", mode: "normal" },
        ];
        const { result, events } = await execute({ ...next, assignment: { ...next.assignment, inputs } });
        expect(result.outcome).toBe("DONE");
        expect(assistantTexts(events)).toEqual(['I heard "heard Back\\nbash cat saved.txt" after 1 earlier.']);
      }));

    test("whose session is lost gets the conversation in its prompt", () =>
      withDirectory(async (root) => {
        const first = await execute(await aRun(root, "e1", lines("heard One", "bash true", "say The answer is 42.")));
        const second = await execute(
          await aRun(root, "e2", "heard Two", { executionSeq: 2 }, { history: first.history() }),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(assistantTexts(second.events)[0]).toMatch(
          /Your session could not be restored.*The answer is 42\..*heard Two/,
        );
      }));

    test("is cancelled without leaving a process", () =>
      withDirectory(async (root) => {
        const marker = markedSeconds();
        const { running } = await during(
          await aRun(root, "e1", `bash setsid sleep ${marker} & sleep ${marker}`),
          async (context) => {
            await eventually(() => expect(processesLike(marker).length).toBeGreaterThan(1));
            context.cancel();
          },
        );
        expect(await running).toMatchObject({ outcome: "CANCELLED" });
        expect(processesLike(marker)).toEqual([]);
      }));

    test("plans first if requested, with read-only tools; a failed turn fails the run", () =>
      withDirectory(async (root) => {
        const inputs = [
          {
            uid: "0190-plan",
            text: lines(
              "tools",
              "bash true",
              "told",
              'tool spawn_run {"prompt": "x"}',
              'tool plan {"title": "P", "markdown": "M"}',
            ),
            kind: "prompt",
            mode: "plan",
          },
        ];
        const planned = await execute(await aRun(root, "e1", "", { mode: "plan", inputs }));
        expect(planned.result).toMatchObject({
          outcome: "BLOCKED",
          message: expect.stringMatching(/^awaiting_approval/),
        });
        expect(assistantTexts(planned.events)[0]).toBe(`plan read_skill ${ask}`);
        expect(assistantTexts(planned.events)[1]).toMatch(
          new RegExp(`Make a plan first[^]*${planModeArguments.source}`),
        );
        expect(ends(planned.events).map(({ name, state }) => [name, state])).toEqual(
          expect.arrayContaining([
            ["spawn_run", "denied"],
            ["create_document", "completed"],
          ]),
        ); // reported through two channels, so the order is not defined
        const failed = await execute(await aRun(root, "e2", "fail It broke."));
        expect(failed.result).toMatchObject({
          outcome: "ERROR",
          error: {
            code: "resource_unavailable",
            reason: "harness_failed",
            message: expect.stringContaining("It broke."),
          },
        });
      }));
  });
}

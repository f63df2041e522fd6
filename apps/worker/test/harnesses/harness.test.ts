import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { outboundRule } from "@millwright/outbound";
import { aFakeHarness, eventually, ModelServer, type FakeHarness } from "@millwright/testing";
import { bareHost } from "../../src/sandbox/spec.ts";
import { executionDir, snapshotUrl, type ContextOptions, type Event } from "../support/a-context.ts";
import { during, ends, execute, kinds } from "../support/execute.ts";
import { aBareRepository, aRepository, git } from "../support/repositories.ts";
import { inBubblewrap, markedSeconds, processesLike, withDirectory } from "../support/sandboxes.ts";
import { callBegun, losing, nextAttempt } from "../support/resume.ts";

const KEY = "canary-key-of-a-harness";
let model: ModelServer;
beforeEach(async () => {
  model = await ModelServer.start([{ text: "hello", usage: { input: 100, output: 10, cacheRead: 5, cacheWrite: 7 } }]);
});
afterEach(() => model.stop());

const assistantTexts = (events: readonly Event[]) =>
  events
    .filter(({ kind, payload }) => kind === "message" && payload["role"] === "assistant")
    .map(({ payload }) => payload["text"]);
const calls = (events: readonly Event[]) =>
  ends(events).map(({ name, category, state, output }) => [
    name,
    category,
    state,
    (output as { output?: string; error?: string }).output ?? (output as { error?: string }).error,
  ]);
const lines = (...orders: string[]) => orders.join("\n");

/** The differences between the stand-ins. */
type Kind = {
  readonly type: FakeHarness;
  readonly provider: string;
  readonly path: string;
  readonly modelId: string;
  readonly usage: object;
  readonly planModeArguments: RegExp;
  readonly planModeTools: string;
};
const CLAUDE: Kind = {
  type: "claude",
  provider: "anthropic",
  path: "",
  modelId: "claude-opus-5-5",
  usage: { inputCacheWriteTokens: 7 },
  planModeArguments: /--tools Read/,
  planModeTools: "",
};
const CODEX: Kind = {
  type: "codex",
  provider: "openai",
  path: "/v1",
  modelId: "gpt-5.5",
  usage: {},
  planModeArguments: /sandbox_mode="read-only".*features\.shell_tool=false/,
  planModeTools: "read_file search list ",
};

/** Returns the options of a run of a stand-in, in its own directory. */
async function aRun(
  { type, provider, path }: Kind,
  root: string,
  name: string,
  prompt: string,
  more: Partial<ContextOptions> & { assignment?: ContextOptions["assignment"] } = {},
): Promise<ContextOptions> {
  const host = {
    ...bareHost("bwrap"),
    harnesses: new Map([[type, { directory: dirname(await aFakeHarness(root, type)), file: type, version: "9.9.9" }]]),
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
      modelId: "",
      idleTimeoutSeconds: 60,
      providerCredentials,
      ...more.assignment,
    },
  };
}

for (const standIn of [CLAUDE, CODEX])
  inBubblewrap(`a third-party harness (${standIn.type} protocol)`, () => {
    test("works in the sandbox: its messages and actions are events of the run; unknown and very long lines break nothing and are stored", () =>
      withDirectory(async (root) => {
        const secrets = { TOKEN: "canary-secret-of-the-run" };
        const prompt = lines(
          "say I begin.",
          "bash echo hi > a.txt; cat a.txt",
          "bash exit 3",
          "flood",
          "odd Ready? canary-secret-of-the-run",
          "say I end.",
        );
        const { result, events, transcripts } = await execute(
          await aRun(standIn, root, "e1", prompt, { assignment: { secrets } }),
        );
        expect(result).toMatchObject({ outcome: "DONE", message: "I end.", snapshotKey: "snapshot-1" });
        expect(assistantTexts(events)).toEqual(["I begin.", "I end."]);
        expect(calls(events)).toEqual([
          ["run_command", "command", "completed", "hi\n"],
          ["run_command", "command", "failed", expect.any(String)],
        ]);
        const unknown = events
          .filter(({ kind }) => kind === "harness_line")
          .map(({ payload }) => payload["line"] as string);
        expect(unknown).toEqual([
          expect.stringMatching(/^\{.*"later","version"/),
          "(a line of 20000000 bytes)",
          "Ready? ***",
        ]);
        expect(transcripts).toEqual([lines(JSON.stringify(prompt).replace(secrets.TOKEN, "***"), ...unknown, "")]);
        expect(new Set(ends(events).map((end) => end["call_id"])).size).toBe(2);
        expect(events.findLast(({ kind }) => kind === "harness_usage")?.payload).toEqual({
          harness: standIn.type,
          counted: { input_tokens: 1 },
          tool_calls: { [standIn.type === "claude" ? "Bash" : "exec_command"]: 2 },
          missed_turns: 0,
          lost_turns: 0,
        });
        expect(kinds(events)).toEqual(
          expect.arrayContaining([
            "sandbox_ready",
            "agent_started",
            "message",
            "tool_start",
            "tool_end",
            "turn_end",
            "sandbox_stopped",
          ]),
        );
      }));

    test("reaches its model through the worker, which has the key, counts the tokens, and serves nothing else", () =>
      withDirectory(async (root) => {
        const prompt = lines(
          "model",
          "env",
          "bash curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:3129/v1/models || true",
        );
        const { result, events, usage, modelCalls } = await execute(
          await aRun(standIn, root, "e1", prompt, { assignment: { modelId: standIn.modelId } }),
        );
        expect(result.outcome).toBe("DONE");
        expect(assistantTexts(events)[0]).toBe('The model said "hello"');
        expect(model.requests.map(({ key, model: name }) => [key, name])).toEqual([[KEY, standIn.modelId]]);
        expect(usage).toEqual([
          {
            callId: "e1-a1-h1",
            modelId: standIn.modelId,
            usage: { inputTokens: 100, outputTokens: 10, inputCacheReadTokens: 5, ...standIn.usage },
          },
        ]);
        expect(modelCalls).toEqual([`${standIn.provider} ok`]);
        expect(JSON.stringify(events)).not.toContain(KEY);
        expect(assistantTexts(events)[1]).toContain('"HOME":"/home/agent"');
      }));

    test("has the platform's tools, and those of the run's servers, as one server; each runs once, under its own name", () =>
      withDirectory(async (root) => {
        const bare = aBareRepository(root, { "a.txt": "one\n" });
        const prompt = lines(
          "tools",
          "bash echo two > a.txt",
          'tool pull_request {"title": "Two"}',
          'tool artifact {"file": "a.txt", "title": "A"}',
          'tool artifact {"file": "absent.txt"}',
          "tool shell {}",
        );
        const { result, events, pullRequests, artifacts } = await execute(
          await aRun(standIn, root, "e1", prompt, {
            assignment: { repositories: [aRepository(bare)], runUid: "run-1" },
          }),
        );
        expect(result.outcome).toBe("DONE");
        expect(assistantTexts(events)[0]).toBe(
          [
            "plan",
            "artifact",
            "screenshot",
            "external_reference",
            "read_skill",
            "pull_request",
            "spawn_run",
            "wait",
            "set_stage",
            "ask_user",
          ].join(" "),
        );
        expect([pullRequests.length, artifacts.length]).toEqual([1, 1]);
        expect(git(bare, "show", "agent/run-1:a.txt")).toBe("two");
        expect(ends(events).map(({ name, state }) => [name, state])).toEqual([
          ["run_command", "completed"],
          ["open_pull_request", "completed"],
          ["report_artifact", "completed"],
          ["report_artifact", "failed"],
          ["shell", "failed"],
        ]);
      }));

    test("that asks blocks its run; after the answer it continues the session on another machine, with its files", () =>
      withDirectory(async (root) => {
        const first = await execute(
          await aRun(
            standIn,
            root,
            "e1",
            lines("bash echo saved > saved.txt", 'tool ask_user {"question": "Which name?"}', "model"),
          ),
        );
        expect(first.result).toMatchObject({ outcome: "BLOCKED", message: "Which name?" });
        expect(model.requests).toEqual([]); // it takes no further step
        const second = await execute(
          await aRun(standIn, root, "e2", lines("heard Ada", "bash cat saved.txt"), {
            history: first.history(),
            assignment: { executionSeq: 2, snapshotUrl: snapshotUrl(join(root, "e1")) },
          }),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(assistantTexts(second.events)).toEqual(['I heard "heard Ada\\nbash cat saved.txt" after 1 earlier.']);
        expect(calls(second.events)).toEqual([["run_command", "command", "completed", "saved\n"]]);
        const session = (events: readonly Event[]) =>
          events.findLast(({ kind }) => kind === "harness_session")!.payload["session_id"];
        expect(session(second.history())).toBe(session(first.events));
      }));

    test("whose session is lost gets the conversation in its prompt", () =>
      withDirectory(async (root) => {
        const first = await execute(await aRun(standIn, root, "e1", lines("heard One", "say The answer is 42.")));
        const second = await execute(
          await aRun(standIn, root, "e2", "heard Two", { history: first.history(), assignment: { executionSeq: 2 } }),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(assistantTexts(second.events)[0]).toMatch(
          /Your session could not be restored.*The answer is 42\..*heard Two/,
        );
      }));

    test("whose worker is lost resumes on another worker from the session and files that were saved last", () =>
      withDirectory(async (root) => {
        const options = await aRun(standIn, root, "e1", lines("bash echo saved > saved.txt", "hang"));
        const lost = await losing(options, async (context) => {
          await callBegun(2)(context);
          await eventually(() => expect(kinds(context.events)).toContain("checkpoint"));
        });
        const next = nextAttempt(lost, await aRun(standIn, root, "e2", ""));
        const inputs = [
          { uid: newUid(), text: lines("heard Back", "bash cat saved.txt"), kind: "followup", mode: "normal" },
        ];
        const { result, events } = await execute({ ...next, assignment: { ...next.assignment, inputs } });
        expect(result.outcome).toBe("DONE");
        expect(assistantTexts(events)).toEqual(['I heard "heard Back\\nbash cat saved.txt" after 1 earlier.']);
        expect(calls(events).map(([, , state, output]) => [state, output])).toEqual([
          ["interrupted", expect.stringContaining("worker was lost")],
          ["completed", "saved\n"],
        ]);
        expect(events.findLast(({ kind: name }) => name === "harness_usage")?.payload["counted"]).toEqual({
          input_tokens: 1,
        });
      }));

    test("accepts a message while it works: its turn is interrupted for it, in the same process", () =>
      withDirectory(async (root) => {
        const { running, events, ackedDirectiveSeq } = await during(
          await aRun(standIn, root, "e1", lines("bash echo $PPID", "hang", "say never said")),
          async (context) => {
            await eventually(() =>
              expect(kinds(context.events).filter((kind) => kind === "tool_start")).toHaveLength(2),
            );
            context.followup({ text: lines("heard News", "bash echo $PPID") });
          },
        );
        expect((await running).outcome).toBe("DONE");
        const [before, hung, after] = calls(events);
        expect([hung![2], after![3]]).toEqual(["interrupted", before![3]]);
        expect(assistantTexts(events)).toEqual([expect.stringContaining("heard News")]);
        expect(ackedDirectiveSeq()).toBe(1n);
      }));

    test("that is interrupted stays idle for the next message", () =>
      withDirectory(async (root) => {
        const { running, events } = await during(
          await aRun(standIn, root, "e1", lines("hang", "say never said")),
          async (context) => {
            await eventually(() => expect(kinds(context.events)).toContain("tool_start"));
            context.interrupt();
            await eventually(() => expect(context.phases).toContain("IDLE"));
            context.followup({ text: "say I continue." });
          },
        );
        expect((await running).outcome).toBe("DONE");
        expect([
          assistantTexts(events),
          events.filter(({ kind }) => kind === "turn_end").map(({ payload }) => payload["outcome"]),
        ]).toEqual([["I continue."], ["interrupted", "done"]]);
      }));

    test("that is cancelled leaves no process; a follow-up continues its session in the workspace of that time", () =>
      withDirectory(async (root) => {
        const marker = markedSeconds();
        const { running, ...first } = await during(
          await aRun(standIn, root, "e1", lines(`bash echo half > a.txt; setsid sleep ${marker} & sleep ${marker}`)),
          async (context) => {
            await eventually(() => expect(processesLike(marker).length).toBeGreaterThan(1));
            context.cancel();
          },
        );
        expect(await running).toEqual({ outcome: "CANCELLED", snapshotKey: "snapshot-1" });
        expect(processesLike(marker)).toEqual([]);
        const second = await execute(
          await aRun(standIn, root, "e2", lines("heard half", "bash cat a.txt"), {
            history: first.history(),
            assignment: { executionSeq: 2, snapshotUrl: snapshotUrl(first.ctx.dir) },
          }),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(calls(second.events)).toEqual([["run_command", "command", "completed", "half\n"]]);
        expect(assistantTexts(second.events)).toEqual([expect.stringMatching(/^I heard .* after 1 earlier\.$/)]);
      }));

    test("that ends in the middle is started again once; then the run ends with the cause", () =>
      withDirectory(async (root) => {
        const once = await execute(await aRun(standIn, root, "e1", lines("say a", "die")));
        expect(once.result.outcome).toBe("DONE");
        expect(assistantTexts(once.events)).toEqual([
          "a",
          expect.stringMatching(/You were interrupted.* after 1 earlier/),
        ]);
        const again = await execute(await aRun(standIn, root, "e2", lines("curse", "die")));
        expect(again.result).toMatchObject({
          outcome: "ERROR",
          error: {
            code: "agent_process_failed",
            reason: "harness_died",
            message: expect.stringContaining("exit code 7): no more"),
          },
        });
        expect([once, again].map(({ events }) => events.filter(({ kind }) => kind === "warning").length)).toEqual([
          1, 1,
        ]);
      }));

    test("plans first if requested, with read-only tools and without those of the platform; after approval it continues", () =>
      withDirectory(async (root) => {
        const input = (text: string, mode: string) => [{ uid: `0190-${mode}`, text, kind: "prompt", mode }];
        const first = await execute(
          await aRun(standIn, root, "e1", "", {
            assignment: {
              mode: "plan",
              inputs: input(
                lines(
                  "tools",
                  "told",
                  'tool spawn_run {"prompt": "x"}',
                  'tool plan {"title": "P", "markdown": "M"}',
                  "say never said",
                ),
                "plan",
              ),
            },
          }),
        );
        expect(first.result).toMatchObject({
          outcome: "BLOCKED",
          message: expect.stringMatching(/^awaiting_approval/),
        });
        expect(assistantTexts(first.events)[0]).toBe(`${standIn.planModeTools}plan read_skill ask_user`);
        expect(assistantTexts(first.events)[1]).toMatch(
          new RegExp(`Make a plan first[^]*${standIn.planModeArguments.source}`),
        );
        expect(ends(first.events).map(({ name, state }) => [name, state])).toEqual([
          ["spawn_run", "denied"],
          ["create_document", "completed"],
        ]);
        const second = await execute(
          await aRun(standIn, root, "e2", "", {
            history: first.history(),
            assignment: {
              executionSeq: 2,
              mode: "plan",
              inputs: input(lines("told", "bash echo made", "say done"), "normal"),
              snapshotUrl: snapshotUrl(join(root, "e1")),
            },
          }),
        );
        expect(second.result.outcome).toBe("DONE");
        expect(assistantTexts(second.events)[0]).not.toMatch(standIn.planModeArguments);
        expect(calls(second.events)).toEqual([["run_command", "command", "completed", "made\n"]]);
      }));
  });

inBubblewrap("a third-party harness", () => {
  test("whose turn fails fails the run; a rejected key and a budget end it with their own causes", () =>
    withDirectory(async (root) => {
      expect((await execute(await aRun(CLAUDE, root, "e1", "fail It broke."))).result).toMatchObject({
        outcome: "ERROR",
        error: {
          code: "resource_unavailable",
          reason: "harness_failed",
          message: expect.stringContaining("It broke."),
        },
      });
      const limited = await execute(
        await aRun(CLAUDE, root, "e2", lines("model", "model", "say never said"), { assignment: { tokenLimit: 100n } }),
      );
      expect(limited.result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", reason: "token_limit" },
      });
      const stepped = await execute(
        await aRun(CLAUDE, root, "e3", lines("model", "model", "say never said"), { assignment: { stepLimit: 1 } }),
      );
      expect(stepped.result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", reason: "step_limit" },
      });
      const costly = await execute(
        await aRun(CLAUDE, root, "e4", lines("model", "say never said"), {
          reserveCost: () => ({ outcome: "exceeded", message: "It has cost $1 of $1." }),
          assignment: { costLimited: true },
        }),
      );
      expect(costly.result).toMatchObject({
        outcome: "FAILED",
        error: { code: "budget_exceeded", reason: "cost_limit", message: "It has cost $1 of $1." },
      });
      await model.stop();
      model = await ModelServer.start([{ status: 401, message: `invalid x-api-key` }]);
      const refused = await execute(await aRun(CLAUDE, root, "e5", lines("model", "say never said")));
      expect(refused.result).toMatchObject({ outcome: "FAILED", error: { code: "external_authentication_required" } });
      expect(model.requests).toHaveLength(1);
    }));

  test("whose team configures an internal model URL is denied it; the operator may configure any", () =>
    withDirectory(async (root) => {
      const base = await aRun(CLAUDE, root, "e1", "model", { outbound: outboundRule([]) });
      expect((await execute(base)).result).toMatchObject({
        outcome: "FAILED",
        error: { code: "invalid_request", reason: "internal_address_refused" },
      });
      expect(model.requests).toEqual([]);
      const providerCredentials = { ...base.assignment!.providerCredentials!, operatorSet: true };
      expect(
        (
          await execute({
            ...base,
            dir: await executionDir(root, "e2"),
            assignment: { ...base.assignment!, providerCredentials },
          })
        ).result.outcome,
      ).toBe("DONE");
    }));

  test("is rejected with a reason without a sandbox, a program or a key", () =>
    withDirectory(async (root) => {
      const base = await aRun(CLAUDE, root, "e1", "say a");
      const refusal = async (over: Partial<ContextOptions>) => (await execute({ ...base, ...over })).result;
      expect(await refusal({ kind: "none" })).toMatchObject({
        outcome: "BLOCKED",
        message: expect.stringContaining("requires a sandbox"),
      });
      expect(await refusal({ host: bareHost("bwrap") })).toMatchObject({
        outcome: "BLOCKED",
        message: expect.stringContaining("no longer has the harness"),
      });
      const { providerCredentials: _none, ...assignment } = base.assignment!;
      expect(await refusal({ assignment })).toMatchObject({
        outcome: "BLOCKED",
        message: expect.stringContaining('no access to the model provider "anthropic"'),
      });
    }));
});

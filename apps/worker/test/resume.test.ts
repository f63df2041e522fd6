import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { eventually, ModelServer, type ModelAnswer } from "@millwright/testing";
import { executionDir, type ContextOptions, type Event } from "./support/a-context.ts";
import { during, ends, execute, kinds, assistantTexts, script } from "./support/execute.ts";
import { callBegun, losing, nextAttempt, pastOf } from "./support/resume.ts";
import { INSIDE_NODE } from "../src/sandbox/bubblewrap.ts";
import { PLACE_STDIO_SERVER } from "./support/mcp-servers.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { inBubblewrap, inEachSandbox, withDirectory } from "./support/sandboxes.ts";

const COUNTED = { usage: { input: 100, output: 10 } };
const FOREVER = "- shell: sleep 600";
const UNTIL_GO = "until test -e ~/go; do sleep 0.05; done";
let server: ModelServer | undefined;
afterEach(() => server?.stop());

async function aModel(...answers: ModelAnswer[]): Promise<NonNullable<ContextOptions["assignment"]>> {
  server = await ModelServer.start(answers);
  return {
    provider: "anthropic",
    modelId: "claude-sonnet-4-5",
    executionId: 3n,
    providerCredentials: { provider: "anthropic", apiKey: "k", baseUrl: server.url },
  };
}

const commandsOf = (events: readonly Event[]) =>
  events
    .filter(({ kind }) => kind === "tool_start")
    .map(({ payload }) => payload["input"] as { command?: string; files?: { path: string }[] });
/** Returns the commands and files of the calls that are marked as repeated. */
const repeatedIn = (events: readonly Event[], kind: string) =>
  events
    .filter((event) => event.kind === kind && event.payload["repeated"] === true)
    .map(({ payload }) => {
      const { command, files } = payload["input"] as { command?: string; files?: { path: string }[] };
      return command ?? files?.[0]?.path;
    });
const outputs = (events: readonly Event[]) => ends(events).map(({ output }) => (output as { output?: string }).output);
const turnEnds = (events: readonly Event[]) =>
  events.filter(({ kind }) => kind === "turn_end").map(({ payload }) => payload["outcome"]);
const INTERRUPT = [
  { seq: 1n, executionId: 1n, attempt: 2, directive: { case: "interrupt" as const, value: { turnId: "" } } },
];
const resumed = (events: readonly Event[]) => events.find(({ kind }) => kind === "agent_resumed")?.payload;

inEachSandbox("when its worker is lost, an execution", (kind) => {
  test("resumes at the step after the last finished one, in the workspace as it was", () =>
    withDirectory(async (root) => {
      const assignment = {
        repositories: [aRepository(aBareRepository(root))],
        setupCommands: ["echo setup >> ~/ran"],
        stepLimit: 5,
      }; // repeated steps count once
      const prompt = script(
        "- shell: 'mkdir -p src && cd src && echo one >> log'",
        "- write: {path: notes.txt, content: noted}",
        "- shell: echo two >> log",
        `- shell: ${UNTIL_GO}`,
        "- shell: 'pwd; cat log ../notes.txt ~/ran'",
      );
      const options = { kind, prompt, assignment };
      const lost = await losing({ ...options, dir: await executionDir(root, "a1") }, callBegun(4));
      const { running, events } = await during(
        nextAttempt(lost, { ...options, dir: await executionDir(root, "a2") }),
        async (context) => {
          await callBegun(1)(context);
          await writeGo(join(root, "a2"));
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(commandsOf(events).map(({ command }) => command)).toEqual([UNTIL_GO, "pwd; cat log ../notes.txt ~/ran"]);
      expect(outputs(events).at(-1)).toMatch(/\/shop\/src\none\ntwo\nnotedsetup\n$/);
      expect(resumed(events)).toMatchObject({ lost: "worker", repeats: [expect.stringMatching(/-3$/)] });
      expect(kinds(events).filter((name) => name === "agent_started")).toEqual([]);
    }));
});

const writeGo = (dir: string) => writeFile(join(dir, "home", "go"), "");

inBubblewrap("when its worker is lost,", () => {
  test("a script writes again what only wrote files, and repeats in order what could not be saved", () =>
    withDirectory(async (root) => {
      const refuse = () => {
        throw new DomainError({ kind: "unavailable", reason: "platform_unavailable", message: "No place for it." });
      };
      const options = {
        prompt: script(
          "- write: {path: a.txt, content: a}",
          "- shell: cat a.txt > b.txt",
          "- edit: {path: b.txt, old: a, new: b}",
          "- say: hello",
          FOREVER,
        ),
        onPutSnapshot: refuse,
      };
      const lost = await losing({ ...options, dir: await executionDir(root, "a1") }, callBegun(4));
      expect(lost.events.filter(({ kind }) => kind === "warning")).toHaveLength(1);
      const next = await losing(nextAttempt(lost, { prompt: "", dir: await executionDir(root, "a2") }), callBegun(3));
      expect(commandsOf(next.events).map(({ command, files }) => command ?? files?.[0]?.path)).toEqual([
        "cat a.txt > b.txt",
        "b.txt",
        "sleep 600",
      ]);
      expect(
        ends(next.events)
          .slice(1)
          .map(({ state }) => state),
      ).toEqual(["completed", "completed"]);
      expect(assistantTexts(next.events)).toEqual([]);

      // Lost again, now with everything saved: nothing must be repeated.
      const last = await losing(nextAttempt(next, { prompt: "", dir: await executionDir(root, "a3") }), callBegun(1));
      expect(commandsOf(last.events).map(({ command }) => command)).toEqual(["sleep 600"]);
    }));

  test("every call that a script repeats is marked as repeated, and listed when the agent resumes", () =>
    withDirectory(async (root) => {
      let isRefused = true;
      const onPutSnapshot = () => {
        if (isRefused)
          throw new DomainError({ kind: "unavailable", reason: "platform_unavailable", message: "No place for it." });
      };
      const prompt = script(
        "- shell: echo a > a.txt",
        "- write: {path: b.txt, content: b}",
        `- shell: ${UNTIL_GO}`,
        "- shell: cat a.txt b.txt",
      );
      const lost = await losing({ prompt, onPutSnapshot, dir: await executionDir(root, "a1") }, callBegun(3));
      isRefused = false;
      const { running, events } = await during(
        nextAttempt(lost, { prompt: "", onPutSnapshot, dir: await executionDir(root, "a2") }),
        async (context) => {
          await callBegun(3)(context);
          await writeGo(join(root, "a2"));
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(outputs(events).at(-1)).toBe("a\nb");
      const again = ["echo a > a.txt", "b.txt", UNTIL_GO];
      expect([repeatedIn(events, "tool_start"), repeatedIn(events, "tool_end")]).toEqual([again, again]);
      expect(resumed(events)).toMatchObject({
        text: expect.stringMatching(/Steps executed again, in this order[^]*: echo a > a\.txt\n.*: b\.txt\n.*: until/),
        repeats: [0, 1, 2].map((index) => expect.stringMatching(new RegExp(`-${index}$`))),
      });
      expect(lost.events.filter(({ payload }) => payload["repeated"] !== undefined)).toEqual([]);
    }));

  test("a script does not repeat a finished call of an MCP server, also if the workspace after it was not saved", () =>
    withDirectory(async (root) => {
      const refuse = () => {
        throw new DomainError({ kind: "unavailable", reason: "platform_unavailable", message: "No place for it." });
      };
      const assignment = {
        setupCommands: [PLACE_STDIO_SERVER],
        mcpServers: [{ name: "calc", command: "sh", args: ["-c", `exec ${INSIDE_NODE} --no-warnings ~/server.mjs`] }],
      };
      const prompt = script(
        "- shell: echo a > a.txt",
        '- mcp: {server: calc, tool: add, json: \'{"a": 1, "b": 1}\'}',
        FOREVER,
      );
      const lost = await losing(
        { prompt, assignment, onPutSnapshot: refuse, dir: await executionDir(root, "a1") },
        callBegun(3),
      );
      expect(ends(lost.events).map(({ name, state }) => [name, state])).toEqual([
        ["run_command", "completed"],
        ["mcp__calc__add", "completed"],
      ]);
      const next = await losing(
        nextAttempt(lost, { prompt: "", assignment, onPutSnapshot: refuse, dir: await executionDir(root, "a2") }),
        callBegun(2),
      );
      expect(commandsOf(next.events).map(({ command }) => command)).toEqual(["echo a > a.txt", "sleep 600"]);
    }));

  test("what is expensive to save is saved less often, and repeated from the newest checkpoint on", () =>
    withDirectory(async (root) => {
      let skippedMs = 0;
      const clock = { now: () => systemClock.now(), monotonicMs: () => systemClock.monotonicMs() + skippedMs };
      const options = {
        prompt: script("- shell: echo 1 >> log", "- shell: echo 2 >> log", "- shell: echo 3 >> log", FOREVER),
        clock,
        onPutSnapshot: () => void (skippedMs += 60_000),
      };
      const lost = await losing({ ...options, dir: await executionDir(root, "a1") }, callBegun(4));
      expect(lost.snapshots).toHaveLength(1);
      const next = await losing(nextAttempt(lost, { prompt: "", dir: await executionDir(root, "a2") }), callBegun(3));
      expect(commandsOf(next.events).map(({ command }) => command)).toEqual([
        "echo 2 >> log",
        "echo 3 >> log",
        "sleep 600",
      ]);
    }));

  test("steps that change nothing cost no snapshot, and are not repeated", () =>
    withDirectory(async (root) => {
      const assignment = { repositories: [aRepository(aBareRepository(root))] };
      const prompt = script("- shell: cat README.md", "- shell: git status", FOREVER);
      const lost = await losing({ prompt, assignment, dir: await executionDir(root, "a1") }, callBegun(3));
      expect([
        lost.snapshots,
        lost.events.filter(({ kind }) => kind === "checkpoint").map(({ payload }) => payload),
      ]).toEqual([[], [{ snapshot_key: "" }, { snapshot_key: "" }]]);
      const next = await losing(
        nextAttempt(lost, { prompt: "", assignment, dir: await executionDir(root, "a2") }),
        callBegun(1),
      );
      expect(commandsOf(next.events).map(({ command }) => command)).toEqual(["sleep 600"]);
    }));

  test("a saved workspace that is no longer available is reported, and its steps are repeated", () =>
    withDirectory(async (root) => {
      const lost = await losing(
        {
          prompt: script("- write: {path: a.txt, content: a}", "- shell: echo b >> a.txt", FOREVER),
          dir: await executionDir(root, "a1"),
        },
        callBegun(3),
      );
      const { assignment, ...options } = nextAttempt(lost, { prompt: "", dir: await executionDir(root, "a2") });
      const next = await losing(
        { ...options, assignment: { ...assignment!, snapshotUrl: "memory:gone" } },
        callBegun(2),
      );
      expect(commandsOf(next.events).map(({ command }) => command)).toEqual(["echo b >> a.txt", "sleep 600"]);
      expect(next.events.filter(({ kind }) => kind === "warning")).toHaveLength(1);
    }));

  test("a pull request is not created again, and later commits are pushed to its branch", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root);
      const assignment = { repositories: [aRepository(bare)] };
      const prompt = script(
        "- write: {path: a.txt, content: a}",
        "- pull_request: Add a",
        `- shell: ${UNTIL_GO}`,
        "- write: {path: b.txt, content: b}",
        "- pull_request: Add b",
      );
      const lost = await losing({ prompt, assignment, dir: await executionDir(root, "a1") }, callBegun(3));
      const { running, events, pullRequests } = await during(
        nextAttempt(lost, { prompt: "", assignment, dir: await executionDir(root, "a2") }),
        async (context) => {
          await callBegun(1)(context);
          await writeGo(join(root, "a2"));
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect([lost.pullRequests.length, pullRequests.length]).toEqual([1, 1]);
      expect(ends(events).map(({ name }) => name)).toEqual([
        "run_command",
        "run_command",
        "edit_files",
        "open_pull_request",
      ]);
      expect(git(bare, "log", "--format=%s", "main..agent/run-1")).toBe("Add b\nAdd a");
    }));

  test.each([
    ["a question", ["- ask: Which name?"], { outcome: "BLOCKED", message: "Which name?" }],
    ["a wait", ["- wait: all"], { outcome: "WAITING", waitFor: { policy: "all" } }],
    ["a closing word", ["- finish: Done."], { outcome: "DONE", message: "Done." }],
    ["a failure", ["- fail: No."], { outcome: "FAILED", error: { code: "agent_reported_failure", message: "No." } }],
    ["nothing more to do", ["- say: Hello."], { outcome: "DONE" }],
  ])("a turn that had ended with %s ends in the same way, without another step", (_name, lines, result) =>
    withDirectory(async (root) => {
      const { events, ctx, history } = await execute({ prompt: script(...lines), dir: await executionDir(root, "a1") });
      const { runUid } = ctx.assignment;
      const end = events.findIndex(({ kind }) => kind === "turn_end");
      // Whether or not the end event itself was stored.
      for (const [index, past] of [history().slice(0, end), history().slice(0, end + 1)].entries()) {
        const next = await execute({
          dir: await executionDir(root, `b${index}`),
          history: past,
          assignment: { executionId: 1n, attempt: 2, runUid, inputs: [] },
        });
        expect(next.result).toMatchObject(result);
        expect(kinds(next.events)).not.toContain("model_step");
      }
    }),
  );

  test("the mode of the newest message still applies", () =>
    withDirectory(async (root) => {
      const inputs = [
        {
          uid: "0190-input-plan",
          text: script("- list: .", "- write: {path: a.txt, content: a}"),
          kind: "prompt",
          mode: "plan",
        },
      ];
      const first = await execute({ assignment: { inputs, mode: "normal" }, dir: await executionDir(root, "a1") });
      const upToList = pastOf(first).slice(0, first.events.findIndex(({ kind }) => kind === "tool_end") + 1);
      const { runUid } = first.ctx.assignment;
      const { events } = await execute({
        history: upToList,
        assignment: { executionId: 1n, attempt: 2, runUid, inputs: [], mode: "normal" },
        dir: await executionDir(root, "a2"),
      });
      expect(ends(events)[0]).toMatchObject({ state: "denied" });
    }));

  test("an interrupt that the lost attempt had not handled ends the resumed turn; later messages begin another", () =>
    withDirectory(async (root) => {
      const lost = await losing(
        { prompt: script(FOREVER, "- say: never"), dir: await executionDir(root, "a1") },
        callBegun(1),
      );
      const { assignment, ...options } = nextAttempt(lost, { prompt: "", dir: await executionDir(root, "a2") });
      const inputs = [{ uid: "0190-later", text: script("- say: heard"), kind: "followup", mode: "normal" }];
      const { result, events, ackedDirectiveSeq } = await execute({
        ...options,
        assignment: { ...assignment!, inputs, directives: INTERRUPT },
      });
      expect([result.outcome, assistantTexts(events), commandsOf(events)]).toEqual(["DONE", ["heard"], []]);
      expect(turnEnds(events)).toEqual(["interrupted", "done"]);
      expect(ackedDirectiveSeq()).toBe(1n);
    }));

  test("an interrupt is acknowledged when the end of its turn is stored, and the run is idle then", () =>
    withDirectory(async (root) => {
      const lost = await losing({ prompt: script(FOREVER), dir: await executionDir(root, "a1") }, callBegun(1));
      const { assignment, ...options } = nextAttempt(lost, { prompt: "", dir: await executionDir(root, "a2") });
      const isStored = Promise.withResolvers<void>();
      const next = {
        ...options,
        flushed: () => isStored.promise,
        assignment: { ...assignment!, idleTimeoutSeconds: 600, directives: INTERRUPT },
      };
      const { running, events } = await during(next, async (context) => {
        await eventually(() => turnEnds(context.events).length === 1);
        expect([context.ackedDirectiveSeq(), context.phases.includes("IDLE")]).toEqual([0n, false]);
        isStored.resolve();
        await eventually(() => context.ackedDirectiveSeq() === 1n && context.phases.includes("IDLE"));
        context.endIdle();
      });
      expect([await running, turnEnds(events)]).toMatchObject([
        { outcome: "BLOCKED", message: "Waiting for input." },
        ["interrupted"],
      ]);
    }));

  test("an interrupt of a turn that had ended changes nothing", () =>
    withDirectory(async (root) => {
      const first = await execute({ prompt: script("- say: Hello."), dir: await executionDir(root, "a1") });
      const { assignment, ...options } = nextAttempt(first, { prompt: "", dir: await executionDir(root, "a2") });
      const inputs = [{ uid: "0190-later", text: script("- say: heard"), kind: "followup", mode: "normal" }];
      const { events } = await execute({ ...options, assignment: { ...assignment!, inputs, directives: INTERRUPT } });
      expect([assistantTexts(events), turnEnds(events)]).toEqual([["heard"], ["done"]]);
    }));

  test("files of delivered messages are at the same paths", () =>
    withDirectory(async (root) => {
      const attachments = [{ uid: "att-1", fileName: "notes.txt", downloadUrl: "memory:a" }];
      const inputs = [
        {
          uid: "0190-input",
          text: script("- shell: cat .attachments/att-1/notes.txt; until test -e go; do sleep 0.02; done"),
          kind: "prompt",
          attachments,
        },
      ];
      const files = { "memory:a": Buffer.from("attached\n") };
      const lost = await losing({ assignment: { inputs }, files, dir: await executionDir(root, "a1") }, callBegun(1));
      const { assignment, ...options } = nextAttempt(lost, { prompt: "", files, dir: await executionDir(root, "a2") });
      const earlierAttachments = [...attachments, { uid: "att-2", fileName: "gone.txt", downloadUrl: "memory:gone" }];
      const { running, events } = await during(
        { ...options, assignment: { ...assignment!, earlierAttachments } },
        async (context) => {
          await callBegun(1)(context);
          await writeFile(join(root, "a2", "workspace", "go"), "");
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(outputs(events).at(-1)).toBe("attached\n");
      expect(events.filter(({ kind }) => kind === "warning")).toHaveLength(1); // for the file that cannot be fetched
    }));

  test("a model continues from the recorded history: no finished call runs again, and it is informed of what was lost", () =>
    withDirectory(async (root) => {
      const model = await aModel(
        {
          text: "I begin.",
          calls: [
            { name: "write_file", input: { path: "a.txt", content: "a" } },
            { name: "shell", input: { command: "echo b > b.txt; cd /tmp" } },
          ],
          ...COUNTED,
        },
        {
          calls: [
            { name: "shell", input: { command: "sleep 600" } },
            { name: "shell", input: { command: "never begun" } },
          ],
          ...COUNTED,
        },
        { calls: [{ name: "shell", input: { command: "pwd; cat /workspace/a.txt /workspace/b.txt" } }], ...COUNTED },
        { text: "Done.", ...COUNTED },
      );
      const lost = await losing(
        { prompt: "Work.", assignment: model, dir: await executionDir(root, "a1") },
        callBegun(3),
      );
      const { result, events, usage } = await execute(
        nextAttempt(lost, { assignment: model, dir: await executionDir(root, "a2") }),
      );
      expect(result).toMatchObject({ outcome: "DONE" });
      expect(assistantTexts(events)).toEqual(["Done."]);
      expect(ends(events).map(({ call_id: id, state, lost: by }) => [id, state, by])).toEqual([
        ["e3-a1-c2-0", "interrupted", "worker"],
        ["e3-a2-c1-0", "completed", undefined],
      ]);
      expect(outputs(events)[1]).toBe("/tmp\nab\n");
      const sent = JSON.stringify(server!.requests[2]!.body["messages"]);
      for (const part of [
        "I begin.",
        "its effect is unknown: check before you repeat it",
        "It was not started.",
        "The worker you worked in was lost",
        "shell: sleep 600",
      ])
        expect(sent).toContain(part);
      // Both calls of the lost attempt were answered. Its history contains no usage for them, so their usage is
      // reported now.
      expect(usage.map(({ callId }) => callId)).toEqual(["e3-a1-c1", "e3-a1-c2", "e3-a2-c1", "e3-a2-c2"]);
    }));

  test("a model is informed which changes were lost, and files are written again if possible", () =>
    withDirectory(async (root) => {
      const model = await aModel(
        {
          calls: [
            { name: "write_file", input: { path: "a.txt", content: "a" } },
            { name: "shell", input: { command: "echo b > b.txt" } },
            { name: "edit_file", input: { path: "b.txt", old: "b", new: "c" } },
            { name: "write_file", input: { path: "c.txt", content: "c" } },
          ],
          ...COUNTED,
        },
        "hang",
        { calls: [{ name: "shell", input: { command: "ls" } }], ...COUNTED },
        { text: "Done.", ...COUNTED },
      );
      const unsaved = {
        onPutSnapshot: () =>
          Promise.reject(new DomainError({ kind: "unavailable", reason: "platform_unavailable", message: "No." })),
      };
      const lost = await losing(
        { prompt: "Work.", assignment: model, ...unsaved, dir: await executionDir(root, "a1") },
        () => eventually(() => server!.requests.length === 2),
      );
      const { events } = await execute(nextAttempt(lost, { assignment: model, dir: await executionDir(root, "a2") }));
      const { text } = resumed(events) as { text: string };
      expect(text).toContain("Written again from the record:\n- write_file: a.txt\n- write_file: c.txt");
      expect(text).toContain("is lost; check it before you rely on it:\n- shell: echo b > b.txt\n- edit_file: b.txt");
      expect(outputs(events)).toEqual(["a.txt\nc.txt\n"]);
    }));

  test("a final response of a model is not requested again", () =>
    withDirectory(async (root) => {
      const model = await aModel({ text: "All done.", ...COUNTED }, { text: "Never.", ...COUNTED });
      const first = await execute({ prompt: "Work.", assignment: model, dir: await executionDir(root, "a1") });
      const history = pastOf(first).slice(
        0,
        first.events.findIndex(({ kind }) => kind === "turn_end"),
      );
      const { result } = await execute({
        history,
        assignment: { ...model, attempt: 2, runUid: first.ctx.assignment.runUid, inputs: [] },
        dir: await executionDir(root, "a2"),
      });
      expect([result.outcome, server!.requests.length]).toEqual(["DONE", 1]);
    }));
});

inBubblewrap("a sandbox that dies under the agent", () => {
  test("Harness crashes: its sandbox is replaced once, over the same files, and the agent continues", () =>
    withDirectory(async (dir) => {
      const { running, events, sandboxes, snapshots } = await during(
        {
          dir,
          prompt: script("- shell: 'cd /home/agent; echo one > log'", `- shell: ${UNTIL_GO}`, "- shell: pwd; cat log"),
        },
        async (context) => {
          await callBegun(2)(context);
          context.sandboxes[0]!.kill();
          await eventually(() => context.sandboxes.length === 2);
          await writeGo(dir);
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(
        commandsOf(events)
          .map(({ command }) => command)
          .slice(1, 3),
      ).toEqual(Array(2).fill(UNTIL_GO));
      expect(outputs(events).at(-1)).toBe("/home/agent\none\n");
      expect(resumed(events)).toMatchObject({ lost: "sandbox" });
      expect([sandboxes.length, snapshots]).toEqual([2, []]);
    }));

  test("Harness crashes: a second crash is an error of the platform, not of the agent, and the workspace is saved", () =>
    withDirectory(async (dir) => {
      const { running, sandboxes } = await during(
        { dir, prompt: script("- shell: echo saved > log", FOREVER) },
        async (context) => {
          for (const nth of [0, 1]) {
            await callBegun(2 + nth)(context);
            context.sandboxes[nth]!.kill();
          }
        },
      );
      expect(await running).toMatchObject({
        outcome: "ERROR",
        error: { code: "agent_process_failed", reason: "sandbox_died" },
        snapshotKey: expect.stringMatching(/^snapshot-/),
      });
      expect(sandboxes.length).toBe(2);
    }));
});

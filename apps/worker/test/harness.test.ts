import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { noScript } from "../src/model/scripted/no-script.ts";
import { executionDir, snapshotUrl, type ContextOptions, type Event, type TestContext } from "./support/a-context.ts";
import { during, ends, execute, kinds, assistantTexts, script } from "./support/execute.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { inBubblewrap, inEachSandbox, markedSeconds, processesLike, withDirectory } from "./support/sandboxes.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

inEachSandbox("an execution", (kind) => {
  test("executes every step of a script with the same tools, and creates branch, pull request, artifacts and snapshot", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root, {
        "src/total.js": "export const bulk = (n) => n > 10;\n",
        "README.md": "ten or more\n",
      });
      const prompt = script(
        "- say: I will fix it.",
        "- list: src",
        "- search: {pattern: 'n > 1\\d', path: src}",
        "- read: {path: src/total.js, start_line: 1}",
        "- shell: {command: 'cd src && ls && exit 3', allow_failure: true}",
        "- shell: pwd",
        "- plan: {title: Fix it, markdown: '1. Compare with >='}",
        "- edit: {path: src/total.js, old: n > 10, new: n >= 10}",
        '- write: {path: notes/new.txt, content: "one\\ntwo\\n"}',
        `- shell: echo ${PNG} | base64 -d > ../../shot.png`,
        "- screenshot: {file: ../shot.png, description: How it looks}",
        "- artifact: {file: notes/new.txt, title: Notes, public: true}",
        "- external_reference: {url: 'https://example.com/issues/1', reference_type: issue, title: The issue}",
        "- pull_request: {title: Compare with at least, body: Ten or more.}",
        '- spawn: {agent: implementer, title: More, prompt: "Do more.\\n```scripted\\n- say: yes\\n```"}',
        "- stage: REVIEW",
        "- wait: all",
        "- say: Done.",
      );
      let lookups = 0;
      const rest: ContextOptions["rest"] = ({ method, path }) => {
        if (method === "POST") return { status: 200, body: { run_id: "child-1" } };
        if (path.includes("task-by-run") && (lookups += 1) < 3) return { status: 404, body: {} };
        return { status: 200, body: { uid: "task-1" } };
      };
      const assignment = {
        repositories: [aRepository(bare)],
        factoryUid: "factory-1",
        spawnableAgents: ["implementer"],
        setupCommands: ["echo ready > ~/setup"],
        dockerImage: "node:24",
        runUid: "run-1",
      };
      const first = await execute({ dir: await executionDir(root, "e1"), prompt, kind, rest, assignment });

      expect(first.result).toEqual({
        outcome: "WAITING",
        waitFor: { policy: "all", runUids: [] },
        snapshotKey: expect.stringMatching(/^snapshot-\d+$/),
      });
      expect(kinds(first.events).slice(0, 7)).toEqual([
        "sandbox_ready",
        "image_substituted",
        "repository_cloned",
        "setup_command",
        "agent_started",
        "message",
        "model_step",
      ]);
      expect(kinds(first.events).slice(-2)).toEqual(["turn_end", "sandbox_stopped"]);
      expect(ends(first.events).map(({ name, state }) => [name, state])).toEqual(
        [
          "file_glob",
          "grep",
          "read_files",
          "run_command",
          "run_command",
          "create_document",
          "edit_files",
          "edit_files",
          "run_command",
          "use_computer",
          "report_artifact",
          "report_artifact",
          "open_pull_request",
          "spawn_run",
          "set_task_stage",
          "wait_for_runs",
        ].map((name) => [name, "completed"]),
      );
      const outputs = ends(first.events).map(({ output }) => output);
      expect(outputs[0]).toMatchObject({ files: [{ path: "total.js", type: "file" }] });
      expect(outputs[1]).toMatchObject({
        matches: 1,
        output: "shop/src/total.js:1:export const bulk = (n) => n > 10;",
      });
      expect(outputs[2]).toMatchObject({
        files: [{ path: "shop/src/total.js", total_lines: 1, content: "export const bulk = (n) => n > 10;" }],
      });
      expect(outputs[3]).toMatchObject({ exit_code: 3, output: "total.js\n" });
      expect((outputs[4] as { output: string }).output).toMatch(/\/shop\/src\n$/);
      expect(outputs.slice(6, 8)).toEqual([
        { files: [{ path: "shop/src/total.js", lines_added: 1, lines_removed: 1 }] },
        { files: [{ path: "shop/notes/new.txt", lines_added: 2, lines_removed: 0, created: true }] },
      ]);
      expect(outputs.slice(13)).toEqual([
        { run_id: "child-1" },
        { task_uid: "task-1", stage: "REVIEW" },
        { policy: "all" },
      ]);

      const callIds = ends(first.events).map(({ call_id: id }) => id);
      expect(first.artifacts.map(({ content, ...artifact }) => ({ ...artifact, bytes: content?.length }))).toEqual([
        { clientArtifactId: callIds[5], artifactType: "PLAN", data: { title: "Fix it" }, bytes: 18 },
        {
          clientArtifactId: callIds[9],
          artifactType: "SCREENSHOT",
          data: { mime_type: "image/png", description: "How it looks" },
          public: false,
          bytes: Buffer.from(PNG, "base64").length,
        },
        {
          clientArtifactId: callIds[10],
          artifactType: "FILE",
          data: { filename: "new.txt", filepath: "shop/notes/new.txt", mime_type: "text/plain", title: "Notes" },
          public: true,
          bytes: 8,
        },
        {
          clientArtifactId: callIds[11],
          artifactType: "EXTERNAL_REFERENCE",
          data: { url: "https://example.com/issues/1", reference_type: "issue", title: "The issue" },
          public: false,
          bytes: undefined,
        },
      ]);
      const sha = git(bare, "rev-parse", "agent/run-1");
      expect(first.pullRequests).toEqual([
        {
          owner: "acme",
          repo: "shop",
          headBranch: "agent/run-1",
          headSha: sha,
          baseBranch: "main",
          title: "Compare with at least",
          body: "Ten or more.",
        },
      ]);
      expect(git(bare, "show", "agent/run-1:src/total.js")).toContain("n >= 10");
      expect(first.restCalls.map(({ method, path }) => `${method} ${path}`)).toEqual([
        "POST /api/v1/agent/runs",
        ...Array.from({ length: 3 }, () => "GET /api/v1/factory/factory-1/task-by-run?run_id=run-1"),
        "PATCH /api/v1/factory/factory-1/tasks/task-1",
      ]);
      expect(first.restCalls[0]).toMatchObject({
        headers: { "idempotency-key": callIds[13] },
        body: {
          parent_run_id: "run-1",
          agent_name: "implementer",
          title: "More",
          prompt: "Do more.\n```scripted\n- say: yes\n```",
        },
      });
      expect(first.usage.length).toBe(kinds(first.events).filter((name) => name === "model_step").length);
      expect(new Set(first.usage.map(({ usage }) => usage.inputTokens))).toEqual(new Set([0]));

      const later = {
        ...assignment,
        executionSeq: 2,
        snapshotUrl: snapshotUrl(first.ctx.dir),
        inputs: [{ uid: "018f-children", text: "Child runs have ended:", kind: "children", mode: "normal" }],
      };
      const second = await execute({
        dir: await executionDir(root, "e2"),
        kind,
        history: first.history(),
        assignment: later,
      });
      expect(second.result).toEqual({ outcome: "DONE", snapshotKey: expect.stringMatching(/^snapshot-\d+$/) });
      expect(assistantTexts(second.events)).toEqual(["Done."]);
      expect(git(join(root, "e2", "workspace", "shop"), "log", "--format=%s")).toBe("Compare with at least\nBegin");
    }));

  test("runs background commands: started, read, ended, and removed with the sandbox", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      const prompt = script(
        `- shell: {command: 'echo up; until test -e go; do sleep 0.02; done; echo went; sleep ${seconds}', background: true}`,
        "- shell: {command: 'sleep 0.1; echo quick; exit 3', background: true}",
        "- write: {path: go, content: x}",
        "- shell_output: {id: bg-2, wait_seconds: 60, allow_failure: true}",
        `- shell: 'until grep -q go .went 2>/dev/null; do ls > .went; done'`,
        "- shell_kill: bg-1",
        `- shell: {command: 'setsid sleep ${seconds}', background: true}`,
        "- shell_output: bg-3",
      );
      const { result, events } = await execute({ dir, kind, prompt });
      expect(result).toMatchObject({ outcome: "DONE" });
      const outputs = ends(events).map(
        ({ output }) => output as { id?: string; running?: boolean; output?: string; exit_code?: number },
      );
      expect([outputs[0], outputs[1], outputs[3]]).toEqual([
        { id: "bg-1", running: true },
        { id: "bg-2", running: true },
        { id: "bg-2", running: false, exit_code: 3, output: "quick\n", truncated: false },
      ]);
      expect(outputs[5]).toMatchObject({ id: "bg-1", running: false, output: expect.stringMatching(/^up\n/) });
      expect(outputs[7]).toMatchObject({ id: "bg-3", running: true });
      await eventually(() => processesLike(seconds).length === 0);
    }));

  test("blocks with that reason if there is no model and no script", () =>
    withDirectory(async (dir) => {
      const { result, events } = await execute({ dir, kind, prompt: "Please fix the bug." });
      const { message, text } = noScript("Please fix the bug.");
      expect(result).toEqual({ outcome: "BLOCKED", message, isWorkspaceUnchanged: true });
      expect(assistantTexts(events)).toEqual([text]);
      expect(events.at(-2)).toEqual({ kind: "turn_end", payload: { outcome: "blocked", message } });
    }));

  test("ends during a command when it is cancelled, without remaining processes", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      const { running, events, sandboxes } = await during(
        { dir, kind, prompt: script(`- shell: setsid sleep ${seconds} & sleep ${seconds}`) },
        async (context) => {
          await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(2));
          context.cancel();
        },
      );
      expect(await running).toEqual({ outcome: "CANCELLED", isWorkspaceUnchanged: true });
      await Promise.all(sandboxes.map((sandbox) => sandbox.gone));
      expect(processesLike(seconds)).toEqual([]);
      expect(events.at(-1)).toEqual({ kind: "sandbox_stopped", payload: { reason: "cancelled" } });
    }));

  test("saves the changes of the step in which it is stopped, and a follow-up continues with them", () =>
    withDirectory(async (root) => {
      const assignment = { repositories: [aRepository(aBareRepository(root))] };
      const seconds = markedSeconds();
      const work = `- shell: echo one > one.txt; echo two > ../two.txt; sleep ${seconds}`;
      const { running, ...stopped } = await during(
        { dir: await executionDir(root, "e1"), kind, prompt: script(work), assignment },
        async (context) => {
          await eventually(() => expect(processesLike(`sleep\0${seconds}`)).not.toEqual([]));
          context.cancel();
        },
      );
      expect(await running).toEqual({ outcome: "CANCELLED", snapshotKey: "snapshot-1" });
      const next = await execute({
        dir: await executionDir(root, "e2"),
        kind,
        prompt: script("- shell: cat one.txt ../two.txt"),
        history: stopped.history(),
        assignment: { ...assignment, executionSeq: 2, snapshotUrl: snapshotUrl(stopped.ctx.dir) },
      });
      expect(ends(next.events).at(-1)).toMatchObject({ state: "completed", output: { output: "one\ntwo\n" } });
    }));
});

inBubblewrap("when it is stopped, an execution", () => {
  /** Runs an execution with a finished and an unfinished step, and calls `stop` during the unfinished one. */
  const stopping = async (
    options: Omit<ContextOptions, "prompt">,
    steps: [string, string],
    stop: (context: TestContext) => void,
  ) => {
    const seconds = markedSeconds();
    const prompt = script(`- shell: ${steps[0]}`, `- shell: ${steps[1]}; sleep ${seconds}`);
    return during({ ...options, prompt }, async (context) => {
      await eventually(() => expect(processesLike(`sleep\0${seconds}`)).not.toEqual([]));
      stop(context);
    });
  };
  const cancel = (context: TestContext) => context.cancel();
  const checkpointsIn = (events: readonly Event[]) =>
    events.filter(({ kind }) => kind === "checkpoint").map(({ payload }) => payload["snapshot_key"]);

  test.each(["cancelled", "timeout"] as const)("saves its workspace (%s)", (cause) =>
    withDirectory(async (dir) => {
      const { running } = await stopping({ dir }, ["true", "echo a > a"], (context) => context.cancel(cause));
      expect(await running).toMatchObject({ snapshotKey: "snapshot-1" });
    }),
  );

  test("uploads nothing if the newest checkpoint already contains everything", () =>
    withDirectory(async (dir) => {
      const { running, events, snapshots } = await stopping({ dir }, ["echo a > a", "true"], cancel);
      expect(await running).toEqual({ outcome: "CANCELLED", snapshotKey: "snapshot-1" });
      expect([checkpointsIn(events), snapshots.length]).toEqual([["snapshot-1"], 1]);
    }));

  test("saves a workspace that is empty again after a checkpoint with files", () =>
    withDirectory(async (dir) => {
      const { running, events } = await stopping({ dir }, ["echo a > a", "rm a"], cancel);
      expect(await running).toEqual({ outcome: "CANCELLED", snapshotKey: "snapshot-2" });
      expect(checkpointsIn(events)).toEqual(["snapshot-1"]);
    }));

  test("saves its workspace if it is stopped while it saves the workspace at its end", () =>
    withDirectory(async (dir) => {
      let context: TestContext | undefined;
      const onPutSnapshot = () => {
        if (context!.ctx.signal.aborted) return;
        context!.cancel();
        context!.ctx.signal.throwIfAborted();
      };
      const prompt = script("- write: {path: a, content: a}");
      const { running } = await during({ dir, prompt, onPutSnapshot }, async (started) => void (context = started));
      expect(await running).toEqual({ outcome: "CANCELLED", snapshotKey: "snapshot-1" });
    }));

  test("states that its workspace could not be saved in time, and reports no snapshot", () =>
    withDirectory(async (dir) => {
      let context: TestContext | undefined;
      const onPutSnapshot = () => {
        context!.endSaving();
        throw new Error("aborted");
      };
      const { running, events } = await stopping({ dir, onPutSnapshot }, ["true", "echo a > a"], (started) => {
        context = started;
        started.cancel();
      });
      expect(await running).toEqual({ outcome: "CANCELLED" });
      expect(events.at(-1)).toEqual({
        kind: "warning",
        payload: { text: "The workspace could not be saved in the time that a stopped execution has." },
      });
    }));

  test.each<[string, (context: TestContext) => void, string]>([
    ["its lease is lost", (context) => context.lose(), "lease_lost"],
    ["its worker stops", (context) => context.cancel("worker_stopping"), "execution_worker_stopping"],
  ])("saves nothing if %s, because the next attempt continues from the newest checkpoint", (_, stop, reason) =>
    withDirectory(async (dir) => {
      const { running, snapshots } = await stopping({ dir }, ["true", "echo a > a"], stop);
      await expect(running).rejects.toMatchObject({ reason });
      expect(snapshots).toEqual([]);
    }),
  );
});

inBubblewrap("turns", () => {
  test("a question blocks, and after the answer it continues in the saved workspace", () =>
    withDirectory(async (root) => {
      const first = await execute({
        dir: await executionDir(root, "e1"),
        prompt: script(
          "- shell: mkdir saved && echo hello > saved/a.txt",
          "- ask: Which name?",
          "- shell: cat saved/a.txt",
        ),
      });
      expect(first.result).toEqual({
        outcome: "BLOCKED",
        message: "Which name?",
        snapshotKey: expect.stringMatching(/^snapshot-\d+$/),
      });
      const second = await execute({
        dir: await executionDir(root, "e2"),
        prompt: "Anna",
        history: first.history(),
        assignment: { executionSeq: 2, snapshotUrl: snapshotUrl(first.ctx.dir) },
      });
      expect(second.result.outcome).toBe("DONE");
      expect(ends(second.events)).toEqual([
        expect.objectContaining({ output: expect.objectContaining({ exit_code: 0, output: "hello\n" }) }),
      ]);
    }));

  test("an interrupt ends the command and the turn; the next message continues in the same sandbox", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      const { running, events, phases, sandboxes, ackedDirectiveSeq } = await during(
        {
          dir,
          prompt: script(`- shell: echo begun > begun; sleep ${seconds}`, "- shell: cat begun"),
          assignment: { idleTimeoutSeconds: 60 },
        },
        async (context) => {
          await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(1));
          context.interrupt();
          await eventually(() => expect(context.phases.at(-1)).toBe("IDLE"));
          context.followup({ text: "Continue." });
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(ends(events).map(({ state, output }) => [state, (output as { output?: string }).output])).toEqual([
        ["interrupted", ""],
        ["completed", "begun\n"],
      ]);
      expect(events.filter(({ kind }) => kind === "turn_end").map(({ payload }) => payload["outcome"])).toEqual([
        "interrupted",
        "done",
      ]);
      expect(phases).toEqual(["SETUP", "RUNNING", "IDLE", "RUNNING", "STOPPING"]);
      expect([sandboxes.length, ackedDirectiveSeq()]).toEqual([1, 2n]);
    }));

  test.each([
    ["its idle time has elapsed", 0, () => {}],
    ["it receives the directive to end", 600, (context: TestContext) => context.endIdle()],
  ] as const)("an idle execution waits for input until %s, then blocks", (_name, idleTimeoutSeconds, end) =>
    withDirectory(async (dir) => {
      const { running } = await during(
        { dir, prompt: script("- say: hello"), assignment: { interactive: true, idleTimeoutSeconds } },
        async (context) => {
          await eventually(() => expect(context.phases).toContain("IDLE"));
          end(context);
        },
      );
      expect(await running).toMatchObject({ outcome: "BLOCKED", message: "Waiting for input." });
    }),
  );

  test("a message that arrives while the agent works is delivered between steps, and its script takes precedence", () =>
    withDirectory(async (dir) => {
      const { running, events, ackedDirectiveSeq } = await during(
        { dir, prompt: script("- shell: until test -e go; do sleep 0.02; done", "- say: never said") },
        async (context) => {
          await eventually(() => expect(kinds(context.events)).toContain("tool_start"));
          context.followup({ uid: "0190-followup", text: script("- say: heard") });
          expect(context.ackedDirectiveSeq()).toBe(0n); // it is not known whether the agent has received it
          await writeFile(join(dir, "workspace", "go"), "");
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(assistantTexts(events)).toEqual(["heard"]);
      expect(events.filter(({ kind }) => kind === "message").map(({ payload }) => payload["message_uid"])).toContain(
        "0190-followup",
      );
      expect(ackedDirectiveSeq()).toBe(1n);
    }));

  test("nothing can be changed before a plan is approved; afterwards the rest is executed", () =>
    withDirectory(async (root) => {
      const inputs = (text: string, mode: string) => ({
        inputs: [{ uid: `0190-input-${mode}`, text, kind: "prompt", mode }],
      });
      const early = await execute({
        dir: await executionDir(root, "e0"),
        assignment: { ...inputs(script("- spawn: Do it"), "orchestrate"), mode: "orchestrate" },
      });
      expect(ends(early.events)[0]).toMatchObject({
        state: "denied",
        output: { error: "spawn_run is not allowed before a plan was approved." },
      });
      expect([early.result.outcome, early.restCalls]).toEqual(["FAILED", []]);
      const prompt = script("- list: .", "- plan: {title: P, markdown: M}", "- write: {path: a.txt, content: x}");
      const first = await execute({
        dir: await executionDir(root, "e1"),
        assignment: { ...inputs(prompt, "plan"), mode: "plan" },
      });
      expect(first.result).toMatchObject({ outcome: "BLOCKED", message: expect.stringMatching(/^awaiting_approval/) });
      const second = await execute({
        dir: await executionDir(root, "e2"),
        history: first.history(),
        assignment: { ...inputs("Approved.", "normal"), mode: "plan", executionSeq: 2 },
      });
      expect(second.result.outcome).toBe("DONE");
      expect(ends(second.events)).toMatchObject([{ name: "edit_files", state: "completed" }]);
    }));

  test("no tool runs before the platform has stored the step that calls it", () =>
    withDirectory(async (dir) => {
      let acknowledge = () => {};
      const acknowledged = new Promise<void>((resolve) => (acknowledge = resolve));
      const { running, events } = await during(
        { dir, prompt: script("- shell: echo x"), flushed: () => acknowledged },
        async (context) => {
          await eventually(() => expect(context.usage.length).toBe(1));
          expect(kinds(context.events).at(-1)).toBe("model_step");
          acknowledge();
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(kinds(events)).toContain("tool_end");
    }));

  test("too many steps end the run", () =>
    withDirectory(async (dir) => {
      const { result } = await execute({
        dir,
        prompt: script("- say: a", "- say: b", "- say: c"),
        assignment: { stepLimit: 2 },
      });
      expect(result).toMatchObject({ outcome: "FAILED", error: { code: "budget_exceeded", reason: "step_limit" } });
    }));

  test.each([
    ["a failing command", ["- shell: exit 7"], /^Step 1 \(shell, line 2\) failed: exit code 7$/],
    [
      "a file that is not there",
      ["- say: x", "- read: absent.txt"],
      /^Step 2 \(read, line 3\) failed: There is no file absent.txt\.$/,
    ],
    [
      "a path outside the workspace",
      ["- write: {path: /etc/passwd, content: x}"],
      /\/etc\/passwd is outside the workspace/,
    ],
    [
      "a text that occurs twice",
      ["- write: {path: a, content: 'x x'}", "- edit: {path: a, old: x, new: y}"],
      /occurs more than once in a/,
    ],
    [
      "a screenshot that is no image",
      ["- write: {path: a.png, content: x}", "- screenshot: a.png"],
      /a.png is not a PNG/,
    ],
    ["a pull request without a repository", ["- pull_request: Add it"], /This run has no repository/],
    [
      "a repository that this run does not have",
      ["- pull_request: {title: Add it, repository: acme/other}"],
      /This run has no repository acme\/other/,
    ],
    [
      "an agent that is not there",
      ["- spawn: {agent: nobody, prompt: x}"],
      /There is no agent "nobody" to start; there is none/,
    ],
    ["a refusal by the platform", ["- spawn: x"], /The child run was not started: Not found \(status 404\)/],
    ["a stage without a task", ["- stage: REVIEW"], /belongs to no factory/],
    ["a command that takes too long", ["- shell: {command: sleep 30, timeout_seconds: 1}"], /took longer than 1 s/],
    [
      "a command that may run until the platform ends the execution as stalled",
      ["- shell: {command: ls, timeout_seconds: 1501}"],
      /timeout_seconds.*1500/s,
    ],
    ["a command that no shell can take", ['- shell: "echo \\0"'], /null bytes/],
    ["its own word", ["- fail: It cannot be done."], /^It cannot be done\.$/],
  ])("%s ends a script with its reason", (_name, lines, message) =>
    withDirectory(async (dir) => {
      const { result } = await execute({ dir, prompt: script(...lines, "- say: never") });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { code: "agent_reported_failure", message: expect.stringMatching(message) },
      });
    }),
  );

  test("a script that cannot be read fails with its line", () =>
    withDirectory(async (dir) => {
      const { result } = await execute({ dir, prompt: `Hello\n${script("- shel: x")}` });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: {
          code: "invalid_request",
          reason: "script_invalid",
          message: expect.stringMatching(/^Line 3, column 3 of the prompt/),
        },
      });
    }));
});

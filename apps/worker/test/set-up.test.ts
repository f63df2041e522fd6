import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { executionDir, snapshotUrl } from "./support/a-context.ts";
import { during, ends, execute, kinds, assistantTexts, script } from "./support/execute.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { inBubblewrap, withDirectory } from "./support/sandboxes.ts";

inBubblewrap("setting up", () => {
  test("Setup command fails: the run ends FAILED with its output", () =>
    withDirectory(async (dir) => {
      const { result, events } = await execute({
        dir,
        prompt: script("- say: never"),
        assignment: { setupCommands: ["echo fine", "echo broken >&2; exit 4", "echo never"] },
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: {
          code: "environment_setup_failed",
          reason: "setup_command_failed",
          message: expect.stringMatching(/exit code 4:\nbroken$/),
        },
      });
      expect(events.filter(({ kind }) => kind === "setup_command").map(({ payload }) => payload["exit_code"])).toEqual([
        0, 4,
      ]);
      expect(kinds(events)).not.toContain("agent_started");
    }));

  test("a missing repository fails the run with a message that names it", () =>
    withDirectory(async (root) => {
      const { result } = await execute({
        dir: await executionDir(root, "e1"),
        prompt: script("- say: x"),
        assignment: { repositories: [aRepository(join(root, "absent.git"))] },
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { code: "environment_setup_failed", message: expect.stringMatching(/^Cannot fetch acme\/shop/) },
      });
    }));

  test("attachments are in the workspace, outside every repository, and no name leads elsewhere", () =>
    withDirectory(async (dir) => {
      const attachments = [{ uid: "att-1", fileName: "../../evil name.txt", downloadUrl: "memory:a" }];
      const { result, events } = await execute({
        dir,
        files: { "memory:a": Buffer.from("attached\n") },
        assignment: {
          inputs: [
            { uid: "0190-input", text: script("- shell: cat .attachments/att-1/*"), kind: "prompt", attachments },
          ],
        },
      });
      expect(result.outcome).toBe("DONE");
      expect(ends(events)[0]).toMatchObject({ output: { output: "attached\n" } });
      expect(events.find(({ kind }) => kind === "message")?.payload["attachments"]).toEqual([
        "/workspace/.attachments/att-1/__.._evil name.txt",
      ]);
    }));

  test("a pull request without any change is rejected", () =>
    withDirectory(async (root) => {
      const { result, pullRequests } = await execute({
        dir: await executionDir(root, "e1"),
        prompt: script("- pull_request: Nothing"),
        assignment: { repositories: [aRepository(aBareRepository(root))] },
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { message: expect.stringMatching(/acme\/shop has no changes to open a pull request with/) },
      });
      expect(pullRequests).toEqual([]);
    }));

  test("a pull request from a repository that the agent removed is rejected", () =>
    withDirectory(async (root) => {
      const prompt = script("- shell: cd / && rm -rf /workspace/shop", "- pull_request: Add it");
      const { result } = await execute({
        dir: await executionDir(root, "e1"),
        prompt,
        assignment: { repositories: [aRepository(aBareRepository(root))] },
      });
      expect(result).toMatchObject({
        outcome: "FAILED",
        error: { message: expect.stringMatching(/The working directory does not exist/) },
      });
    }));

  test("a setup command that cannot even be started ends the run as one that fails", () =>
    withDirectory(async (dir) => {
      const { result } = await execute({
        dir,
        prompt: script("- say: never"),
        assignment: { setupCommands: ["echo \0"] },
      });
      expect(result).toMatchObject({ outcome: "FAILED", error: { code: "environment_setup_failed" } });
    }));

  test("an attachment with a long name retains its beginning and its extension; one that cannot be stored is reported", () =>
    withDirectory(async (dir) => {
      const attachments = [{ uid: "att-1", fileName: `${"漢".repeat(100)}.txt`, downloadUrl: "memory:a" }];
      const followup = {
        uid: "0190-later",
        text: script("- say: heard"),
        attachments: [{ uid: "att-2", fileName: "b.txt", downloadUrl: "memory:a" }],
      };
      const { running, events } = await during(
        {
          dir,
          files: { "memory:a": Buffer.from("attached\n") },
          assignment: {
            inputs: [
              {
                uid: "0190-input",
                text: script(
                  "- shell: cat .attachments/att-1/漢*.txt && rm -r .attachments && touch .attachments; until test -e go; do sleep 0.02; done",
                ),
                kind: "prompt",
                attachments,
              },
            ],
          },
        },
        async (context) => {
          await eventually(() => expect(kinds(context.events)).toContain("tool_start"));
          context.followup(followup);
          await writeFile(join(dir, "workspace", "go"), "");
        },
      );
      expect(await running).toMatchObject({ outcome: "DONE" });
      expect(ends(events)[0]).toMatchObject({ output: { output: "attached\n" } });
      expect([assistantTexts(events), kinds(events).filter((kind) => kind === "warning")]).toEqual([
        ["heard"],
        ["warning"],
      ]);
    }));

  test.each([
    ["cannot be fetched", undefined],
    ["is not an archive", Buffer.from("no archive")],
  ])("a run whose saved workspace %s continues with the pushed commits", (_name, content) =>
    withDirectory(async (root) => {
      const repositories = [aRepository(aBareRepository(root))];
      const first = await execute({
        dir: await executionDir(root, "e1"),
        prompt: script(
          "- write: {path: a.txt, content: x}",
          "- pull_request: Add it",
          "- write: {path: b.txt, content: y}",
        ),
        assignment: { repositories },
      });
      const second = await execute({
        dir: await executionDir(root, "e2"),
        prompt: script("- shell: ls && git status --porcelain"),
        history: first.history(),
        files: content ? { "memory:saved": content } : {},
        assignment: { repositories, executionSeq: 2, snapshotUrl: "memory:saved" },
      });
      expect(ends(second.events)[0]).toMatchObject({ output: { exit_code: 0, output: "README.md\na.txt\n" } });
      expect(second.events.find(({ kind }) => kind === "warning")?.payload["text"]).toMatch(
        /^The saved workspace could not be restored/,
      );
    }),
  );

  test("secrets and plain values are in the agent's environment, and secrets appear nowhere", () =>
    withDirectory(async (dir) => {
      const { events } = await execute({
        dir,
        prompt: script("- shell: echo $COLOUR ${#TOKEN} $TOKEN"),
        assignment: { env: { COLOUR: "blue" }, secrets: { TOKEN: "s3cret" } },
      });
      expect(ends(events)[0]).toMatchObject({ output: { output: "blue 6 ***\n" } });
    }));

  test("an attempt after a lost one continues the branch that the lost one pushed", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root);
      const prompt = script("- write: {path: a.txt, content: x}", "- pull_request: Add it");
      const inputs = {
        inputs: [{ uid: "0190-input", text: prompt, kind: "prompt" }],
        repositories: [aRepository(bare)],
      };
      const lost = await execute({ dir: await executionDir(root, "e1"), assignment: inputs });
      const again = await execute({
        dir: await executionDir(root, "e2"),
        assignment: { ...inputs, attempt: 2, restarted: true },
      });
      expect([lost.result.outcome, again.result.outcome]).toEqual(["DONE", "DONE"]);
      expect(git(bare, "rev-parse", "agent/run-1")).toBe(again.pullRequests[0]?.headSha);
      expect(git(bare, "rev-list", "--count", "agent/run-1")).toBe("2");
    }));

  test("a follow-up whose branch another client moved is rejected, and that work is retained", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root);
      const repositories = [aRepository(bare)];
      const first = await execute({
        dir: await executionDir(root, "e1"),
        prompt: script("- write: {path: a.txt, content: x}", "- pull_request: Add it"),
        assignment: { repositories },
      });
      git(root, "clone", "--quiet", "--branch", "agent/run-1", bare, "person");
      git(join(root, "person"), "commit", "--quiet", "--allow-empty", "--message", "A person's");
      git(join(root, "person"), "push", "--quiet");
      const assignment = { repositories, executionSeq: 2, snapshotUrl: snapshotUrl(first.ctx.dir) };
      const second = await execute({
        dir: await executionDir(root, "e2"),
        prompt: script("- write: {path: b.txt, content: y}", "- pull_request: Add more"),
        history: first.history(),
        assignment,
      });
      expect(second.result).toMatchObject({
        outcome: "FAILED",
        error: { message: expect.stringMatching(/another client has pushed/) },
      });
      expect(git(bare, "log", "-1", "--format=%s", "agent/run-1")).toBe("A person's");
    }));

  test.each(["scripted", "anthropic"])(
    "a worker without a sandbox executes nothing of a run with provider %s",
    (provider) =>
      withDirectory(async (dir) => {
        const prompt = script("- shell: touch executed");
        const { result, sandboxes } = await execute({
          dir,
          kind: "none",
          isChosen: false,
          prompt,
          assignment: { provider, modelId: "some-model" },
        });
        expect(result).toMatchObject({
          outcome: "BLOCKED",
          message: expect.stringMatching(/^This worker has no sandbox/),
        });
        expect(sandboxes).toEqual([]);
      }),
  );
});

import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { eventually, ModelServer, type ModelAnswer, type ModelRequest } from "@millwright/testing";
import { probeHarnesses } from "../../src/adapters/probe-harnesses.ts";
import { bareHost } from "../../src/sandbox/spec.ts";
import { executionDir, snapshotUrl, type ContextOptions, type Event } from "../support/a-context.ts";
import { during, ends, execute } from "../support/execute.ts";
import { aBareRepository, aRepository, git } from "../support/repositories.ts";
import { markedSeconds, probe, processesLike, withDirectory } from "../support/sandboxes.ts";

const program = process.env["MILLWRIGHT_TEST_CLAUDE"] ?? "";
const reason = program === "" ? "no program is named: npm run test:harnesses installs one" : "it needs bubblewrap";
const declare = program !== "" && probe.kind === "bwrap" ? describe : describe.skip;
const KEY = "canary-key-of-claude";
const USAGE = { usage: { input: 100, output: 10 } };

const said = (events: readonly Event[]) => events.filter(({ kind, payload }) => kind === "message" && payload["role"] === "assistant").map(({ payload }) => payload["text"]);
const bash = (command: string): ModelAnswer => ({ calls: [{ name: "Bash", input: { command, description: "work" } }], ...USAGE });

/** A model that is asked for titles and the like, too: those requests have no tools. */
async function withModel(answer: (step: number, text: string) => ModelAnswer, use: (model: ModelServer, run: (root: string, name: string, over?: Partial<ContextOptions>) => Promise<ContextOptions>) => Promise<void>): Promise<void> {
  let steps = 0;
  const answerTo = ({ body }: ModelRequest): ModelAnswer =>
    (body["tools"] as unknown[] | undefined)?.length ? answer((steps += 1) - 1, JSON.stringify(body["messages"])) : { text: "A title", ...USAGE };
  const model = await ModelServer.start(answerTo);
  const host = { ...bareHost("bwrap"), harnesses: new Map([["claude", { directory: dirname(program), file: basename(program), version: "" }]]) };
  try {
    await use(model, async (root, name, over = {}) => ({
      ...{ host, dir: await executionDir(root, name), ...over },
      assignment: { harness: "claude", provider: "anthropic", modelId: "claude-sonnet-4-5", idleTimeoutSeconds: 60, providerCredentials: { provider: "anthropic", apiKey: KEY, baseUrl: model.url }, ...over.assignment },
    }));
  } finally {
    await model.stop();
  }
}

declare(program !== "" && probe.kind === "bwrap" ? "Claude Code" : `Claude Code (skipped: ${reason})`, () => {
  test("is found by the worker, with its version", async () => {
    const { host, warnings } = await probeHarnesses(bareHost("bwrap"), { claude: program });
    expect([host.harnesses?.get("claude")?.version, warnings]).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+/), []]);
  });

  test("edits, commits, reports an artifact and opens a pull request; what it used is what the model counted, and it never has the key", () =>
    withDirectory(async (root) => {
      const bare = aBareRepository(root, { "a.txt": "one\n" });
      const answers: ModelAnswer[] = [
        bash("echo two > a.txt && git commit -qam two && ! env | grep canary-key"),
        { calls: [{ name: "mcp__millwright__artifact", input: { file: "a.txt", title: "A" } }], ...USAGE },
        { calls: [{ name: "mcp__millwright__pull_request", input: { title: "Two" } }], ...USAGE },
        { text: "It is two.", ...USAGE },
      ];
      await withModel((step) => answers[step]!, async (model, run) => {
        const { result, events, artifacts, pullRequests, usage } = await execute(await run(root, "e1", { prompt: "Make it two.", assignment: { repositories: [aRepository(bare)], runUid: "run-1" } }));
        expect(result).toMatchObject({ outcome: "DONE", message: "It is two." });
        expect([artifacts.length, pullRequests.length, git(bare, "show", "agent/run-1:a.txt")]).toEqual([1, 1, "two"]);
        expect(ends(events).map(({ name, state }) => [name, state])).toEqual([["run_command", "completed"], ["report_artifact", "completed"], ["open_pull_request", "completed"]]);
        expect(usage.filter(({ usage: { inputTokens } }) => inputTokens === 100)).toHaveLength(model.requests.length);
        expect(model.requests.every(({ key }) => key === KEY)).toBe(true);
        expect(JSON.stringify(events)).not.toContain(KEY);
      });
    }));

  test("takes a message in the middle of a tool, asks, and is gone on with elsewhere from its own session", () =>
    withDirectory(async (root) => {
      const marker = markedSeconds();
      const answer = (_step: number, text: string): ModelAnswer => {
        if (text.includes("Ada")) return text.includes("Stop that") ? { text: "Hello Ada.", ...USAGE } : { text: "I have forgotten.", ...USAGE };
        if (text.includes("Stop that")) return { calls: [{ name: "mcp__millwright__ask_user", input: { question: "Which name?" } }], ...USAGE };
        return bash(`sleep ${marker}`);
      };
      await withModel(answer, async (_model, run) => {
        const first = await during(await run(root, "e1", { prompt: "Sleep." }), async (context) => {
          await eventually(() => expect(processesLike(marker)).not.toEqual([]));
          context.followup({ text: "Stop that, and ask." });
        });
        expect(await first.running).toMatchObject({ outcome: "BLOCKED", message: "Which name?" });
        expect(processesLike(marker)).toEqual([]);
        expect(ends(first.events).map(({ name, state }) => [name, state])).toEqual([["run_command", "interrupted"], ["ask_user", "completed"]]);
        const second = await execute(await run(root, "e2", { prompt: "Ada", history: first.history(), assignment: { executionSeq: 2, snapshotUrl: snapshotUrl(join(root, "e1")) } }));
        expect(second.result.outcome).toBe("DONE");
        expect(said(second.events)).toEqual(["Hello Ada."]);
      });
    }));

  test("is cancelled without leaving a process", () =>
    withDirectory(async (root) => {
      const marker = markedSeconds();
      await withModel(() => bash(`setsid sleep ${marker} & sleep ${marker}`), async (_model, run) => {
        const { running } = await during(await run(root, "e1", { prompt: "Sleep." }), async (context) => {
          await eventually(() => expect(processesLike(marker).length).toBeGreaterThan(1));
          context.cancel();
        });
        await expect(running).rejects.toMatchObject({ reason: "execution_cancelled" });
        await eventually(() => expect(processesLike(marker)).toEqual([]));
      });
    }));

  test("whose key is refused ends its run with the cause, after one call", () =>
    withDirectory((root) =>
      withModel(() => ({ status: 401, message: "invalid x-api-key" }), async (_model, run) => {
        expect((await execute(await run(root, "e1", { prompt: "Work." }))).result).toMatchObject({ outcome: "FAILED", error: { code: "external_authentication_required" } });
      }),
    ));
});

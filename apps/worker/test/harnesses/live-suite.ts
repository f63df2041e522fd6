import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import {
  eventually,
  ModelServer,
  type AgentProgram,
  type ModelAnswer,
  type ModelCall,
  type ModelRequest,
} from "@millwright/testing";
import { probeHarnesses } from "../../src/adapters/probe-harnesses.ts";
import { bareHost } from "../../src/sandbox/spec.ts";
import { executionDir, snapshotUrl, type ContextOptions, type Event } from "../support/a-context.ts";
import { during, ends, execute } from "../support/execute.ts";
import { callBegun, losing, nextAttempt } from "../support/resume.ts";
import { aBareRepository, aRepository, git } from "../support/repositories.ts";
import { markedSeconds, probe, processesLike, withDirectory } from "../support/sandboxes.ts";

export type LiveHarness = AgentProgram & {
  /** Returns repository files that would make the program run `command` if it trusted them. */
  readonly trap: (command: string) => Readonly<Record<string, string>>;
  /** The program's own counts for a response that used 100 input tokens and 10 output tokens. */
  readonly counted: Readonly<Record<string, number>> | undefined;
};

const KEY = "canary-key-of-a-harness";
const USAGE = { usage: { input: 100, output: 10 } };
const call = (...calls: ModelCall[]): ModelAnswer => ({ calls, ...USAGE });
const assistantTexts = (events: readonly Event[]) =>
  events
    .filter(({ kind, payload }) => kind === "message" && payload["role"] === "assistant")
    .map(({ payload }) => payload["text"]);

const fourfold = (counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count * 4]));

/**
 * Tests the guarantees of every agent program with the real program. Skipped, with the reason, if the program is not
 * installed.
 */
export function liveSuite(harness: LiveHarness): void {
  const { title, type, variable, provider, modelId, path, shell, platform, isStep } = harness;
  const program = process.env[variable] ?? "";
  const isThere = program !== "" && probe.kind === "bwrap";
  const reason = program === "" ? "no program is named: npm run test:harnesses installs one" : "it needs bubblewrap";

  /** `answer` is called for each step of the agent, with the complete request to the model. */
  async function withModel(
    answer: (step: number, text: string) => ModelAnswer,
    use: (
      model: ModelServer,
      run: (root: string, name: string, over?: Partial<ContextOptions>) => Promise<ContextOptions>,
    ) => Promise<void>,
  ): Promise<void> {
    let steps = 0;
    const answerTo = ({ body }: ModelRequest): ModelAnswer =>
      isStep(body) ? answer((steps += 1) - 1, JSON.stringify(body)) : { text: "A title", ...USAGE };
    const model = await ModelServer.start(answerTo);
    const host = {
      ...bareHost("bwrap"),
      harnesses: new Map([[type, { directory: dirname(program), file: basename(program), version: "" }]]),
    };
    try {
      await use(model, async (root, name, over = {}) => ({
        ...{ host, dir: await executionDir(root, name), ...over },
        assignment: {
          harness: type,
          provider,
          modelId,
          idleTimeoutSeconds: 60,
          providerCredentials: { provider, apiKey: KEY, baseUrl: model.url + path },
          ...over.assignment,
        },
      }));
    } finally {
      await model.stop();
    }
  }

  (isThere ? describe : describe.skip)(isThere ? title : `${title} (skipped: ${reason})`, () => {
    test("is found by the worker, with its version", async () => {
      const { host, warnings } = await probeHarnesses(bareHost("bwrap"), { [type]: program });
      expect([host.harnesses?.get(type)?.version, warnings]).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+/), []]);
    });

    test("edits, commits, reports an artifact and opens a pull request; what it used is what the model counted, and it never has the key", () =>
      withDirectory(async (root) => {
        const bare = aBareRepository(root, { "a.txt": "one\n" });
        const answers: ModelAnswer[] = [
          call(shell("echo two > a.txt && git commit -qam two && ! env | grep canary-key")),
          call(platform("artifact", { file: "a.txt", title: "A" })),
          call(platform("pull_request", { title: "Two" })),
          { text: "It is two.", ...USAGE },
        ];
        await withModel(
          (step) => answers[step]!,
          async (model, run) => {
            const { result, events, artifacts, pullRequests, usage } = await execute(
              await run(root, "e1", {
                prompt: "Make it two.",
                assignment: { repositories: [aRepository(bare)], runUid: "run-1" },
              }),
            );
            expect(result).toMatchObject({ outcome: "DONE", message: "It is two." });
            expect([artifacts.length, pullRequests.length, git(bare, "show", "agent/run-1:a.txt")]).toEqual([
              1,
              1,
              "two",
            ]);
            expect(ends(events).map(({ name, state }) => [name, state])).toEqual([
              ["run_command", "completed"],
              ["report_artifact", "completed"],
              ["open_pull_request", "completed"],
            ]);
            expect(usage.filter(({ usage: { inputTokens } }) => inputTokens === 100)).toHaveLength(
              model.requests.length,
            );
            expect(model.requests.every(({ key }) => key === KEY)).toBe(true);
            expect(JSON.stringify(events)).not.toContain(KEY);
            const own = events.findLast(({ kind }) => kind === "harness_usage")?.payload;
            expect(own).toMatchObject(
              harness.counted === undefined
                ? { missed_turns: 1 }
                : { missed_turns: 0, counted: fourfold(harness.counted) },
            );
            expect(Object.values(own!["tool_calls"] as object)).toEqual([1, 1, 1]);
          },
        );
      }));

    test("takes a message in the middle of a tool, asks, and is gone on with elsewhere from its own session", () =>
      withDirectory(async (root) => {
        const marker = markedSeconds();
        const answer = (_step: number, text: string): ModelAnswer => {
          if (text.includes("Ada"))
            return text.includes("Stop that")
              ? { text: "Hello Ada.", ...USAGE }
              : { text: "I have forgotten.", ...USAGE };
          if (text.includes("Stop that")) return call(platform("ask_user", { question: "Which name?" }));
          return call(shell(`sleep ${marker}`));
        };
        await withModel(answer, async (_model, run) => {
          const first = await during(await run(root, "e1", { prompt: "Sleep." }), async (context) => {
            await callBegun(1)(context);
            await eventually(() => expect(processesLike(marker)).not.toEqual([]));
            context.followup({ text: "Stop that, and ask." });
          });
          expect(await first.running).toMatchObject({ outcome: "BLOCKED", message: "Which name?" });
          expect(processesLike(marker)).toEqual([]);
          expect(ends(first.events).map(({ name, state }) => [name, state])).toEqual([
            ["run_command", "interrupted"],
            ["ask_user", "completed"],
          ]);
          const second = await execute(
            await run(root, "e2", {
              prompt: "Ada",
              history: first.history(),
              assignment: { executionSeq: 2, snapshotUrl: snapshotUrl(join(root, "e1")) },
            }),
          );
          expect(second.result.outcome).toBe("DONE");
          expect(assistantTexts(second.events)).toEqual(["Hello Ada."]);
          expect(
            second.events.filter(
              ({ kind, payload }) =>
                kind === "harness_session" || JSON.stringify(payload).includes("could not be restored"),
            ),
          ).toEqual([]);
        });
      }));

    test("whose worker is lost during a tool call resumes elsewhere with its saved session and files", () =>
      withDirectory(async (root) => {
        const marker = markedSeconds();
        let attempt = 1;
        const answer = (_step: number, text: string): ModelAnswer => {
          if (attempt === 2)
            return text.includes("noted-by-the-first") && text.includes("were interrupted")
              ? call(shell("cat saved.txt"))
              : { text: "I have forgotten.", ...USAGE };
          return text.includes("noted-by-the-first")
            ? call(shell(`sleep ${marker}`))
            : call(shell("echo saved > saved.txt; echo noted-by-the-first"));
        };
        await withModel(
          (step, text) => (text.includes("saved-file-seen") ? { text: "I see it.", ...USAGE } : answer(step, text)),
          async (_model, run) => {
            const options = await run(root, "e1", { prompt: "Work." });
            const lost = await losing(options, async (context) => {
              await eventually(() => expect(processesLike(marker)).not.toEqual([]));
              await eventually(() => expect(context.events.some(({ kind }) => kind === "checkpoint")).toBe(true));
            });
            await eventually(() => expect(processesLike(marker)).toEqual([]));
            attempt = 2;
            const seen = { ...(await run(root, "e2")), prompt: "" };
            const next = await during(nextAttempt(lost, seen), async (context) => {
              await eventually(() =>
                expect(
                  ends(context.events).some(({ output }) => (output as { output?: string }).output?.includes("saved")),
                ).toBe(true),
              );
              context.followup({ text: "saved-file-seen" });
            });
            expect((await next.running).outcome).toBe("DONE");
            expect(assistantTexts(next.events).at(-1)).toBe("I see it.");
            expect(assistantTexts(next.events)).not.toContain("I have forgotten.");
          },
        );
      }));

    test("is cancelled without leaving a process", () =>
      withDirectory(async (root) => {
        const marker = markedSeconds();
        await withModel(
          () => call(shell(`setsid sleep ${marker} & sleep ${marker}`)),
          async (_model, run) => {
            const { running } = await during(await run(root, "e1", { prompt: "Sleep." }), async (context) => {
              await eventually(() => expect(processesLike(marker).length).toBeGreaterThan(1));
              context.cancel();
            });
            expect(await running).toMatchObject({ outcome: "CANCELLED" });
            await eventually(() => expect(processesLike(marker)).toEqual([]));
          },
        );
      }));

    test("runs nothing that a repository has prepared for it", () =>
      withDirectory(async (root) => {
        const bare = aBareRepository(root, { "a.txt": "one\n", ...harness.trap("touch /workspace/trapped") });
        const answers: ModelAnswer[] = [call(shell("ls /workspace")), { text: "Done.", ...USAGE }];
        await withModel(
          (step) => answers[step]!,
          async (_model, run) => {
            const { result, events } = await execute(
              await run(root, "e1", { prompt: "Look.", assignment: { repositories: [aRepository(bare)] } }),
            );
            expect(result.outcome).toBe("DONE");
            expect(JSON.stringify(ends(events))).toContain("shop");
            expect(JSON.stringify(ends(events))).not.toContain("trapped");
          },
        );
      }));

    test("continues after a command that writes 10 MB", () =>
      withDirectory(async (root) => {
        const answers: ModelAnswer[] = [
          call(shell("head -c 10000000 /dev/zero | tr '\\0' x")),
          { text: "It was long.", ...USAGE },
        ];
        await withModel(
          (step) => answers[step]!,
          async (_model, run) => {
            const { result, events } = await execute(await run(root, "e1", { prompt: "Write." }));
            expect(result).toMatchObject({ outcome: "DONE", message: "It was long." });
            expect(ends(events).map(({ name, state }) => [name, state])).toEqual([["run_command", "completed"]]);
          },
        );
      }));

    test("gets the rules of the repository once", () =>
      withDirectory(async (root) => {
        const bare = aBareRepository(root, { "AGENTS.md": "Compare with care.\n" });
        await withModel(
          () => ({ text: "I do.", ...USAGE }),
          async (model, run) => {
            const { result } = await execute(
              await run(root, "e1", { prompt: "Compare.", assignment: { repositories: [aRepository(bare)] } }),
            );
            expect(result.outcome).toBe("DONE");
            const steps = model.requests
              .filter(({ body }) => isStep(body))
              .map(({ body }) => JSON.stringify(body).split("Compare with care.").length - 1);
            expect(steps).toEqual(steps.map(() => 1));
          },
        );
      }));

    test("that is asked for a plan changes nothing before it is approved, and runs commands after it", () =>
      withDirectory(async (root) => {
        const planned: ModelAnswer[] = [
          call(shell("touch /workspace/changed")),
          call(platform("plan", { title: "P", markdown: "M" })),
          { text: "Never said.", ...USAGE },
        ];
        const approved: ModelAnswer[] = [
          call(shell("touch /workspace/changed && echo made")),
          { text: "Done.", ...USAGE },
        ];
        let isApproved = false;
        await withModel(
          (step) => (isApproved ? approved.shift()! : planned[step]!),
          async (_model, run) => {
            const inputs = (text: string, mode: string) => [{ uid: `0190-${mode}`, text, kind: "prompt", mode }];
            const options = await run(root, "e1", { assignment: { mode: "plan", inputs: inputs("Plan.", "plan") } });
            const first = await execute(options);
            expect(first.result).toMatchObject({
              outcome: "BLOCKED",
              message: expect.stringMatching(/^awaiting_approval/),
            });
            expect(readdirSync(join(options.dir, "workspace"))).not.toContain("changed");
            isApproved = true;
            const assignment = {
              executionSeq: 2,
              mode: "plan",
              inputs: inputs("Go ahead.", "normal"),
              snapshotUrl: snapshotUrl(join(root, "e1")),
            };
            const second = await execute(await run(root, "e2", { history: first.history(), assignment }));
            expect(second.result.outcome).toBe("DONE");
            expect(
              ends(second.events).map(({ name, state, output }) => [
                name,
                state,
                (output as { output?: string }).output,
              ]),
            ).toEqual([["run_command", "completed", expect.stringContaining("made")]]);
          },
        );
      }));

    test("whose key is refused ends its run with the cause, after one call", () =>
      withDirectory((root) =>
        withModel(
          () => ({ status: 401, message: "invalid key" }),
          async (_model, run) => {
            expect((await execute(await run(root, "e1", { prompt: "Work." }))).result).toMatchObject({
              outcome: "FAILED",
              error: { code: "external_authentication_required" },
            });
          },
        ),
      ));
  });
}

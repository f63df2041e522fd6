import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  AGENT_PROGRAMS,
  eventually,
  isExpected,
  ModelServer,
  type AgentProgram,
  type ModelAnswer,
  type ModelCall,
} from "@millwright/testing";
import type { Program } from "@millwright/test-platform";
import { git, processesOfRuns } from "@millwright/test-platform";
import { HarnessPlatform, KEY, messagesOf } from "./support/agent-programs.ts";
import type { Client } from "./support/client.ts";
import { eventsOf, waitForState, RUN_TIMEOUT_MS, succeeded } from "./support/runs.ts";

/**
 * The real agent programs. This suite tests them as harnesses.test.ts tests stand-ins; `npm run test:harnesses` sets
 * their paths.
 */
const PROGRAMS = Object.values(AGENT_PROGRAMS);
const USAGE = { usage: { input: 100, output: 10 } };
const fileOf = ({ variable }: AgentProgram): string => process.env[variable] ?? "";
const isTried = (program: AgentProgram): boolean => fileOf(program) !== "" && isExpected("bwrap");

let models: ModelServer;
let works: HarnessPlatform;
let api: Client;
const workers: Program[] = [];
/** The program under test and the model's answers to its steps. */
let program: AgentProgram;
let answer: (step: number, text: string) => ModelAnswer;
let steps = 0;

beforeAll(async () => {
  if (!PROGRAMS.some(isTried)) return;
  models = await ModelServer.start(({ body }) =>
    program.isStep(body) ? answer((steps += 1) - 1, JSON.stringify(body)) : { text: "A title", ...USAGE },
  );
  works = await HarnessPlatform.start(
    models,
    Object.fromEntries(PROGRAMS.filter(isTried).map((one) => [one.type, fileOf(one)])),
  );
  api = works.api;
  nextWorker();
});
afterAll(async () => {
  await works?.remove();
  await models?.stop();
});

const nextWorker = (): void => void workers.push(works.startWorker(`worker-${workers.length}`));
const lead = (by: typeof answer): void => {
  answer = by;
  steps = 0;
};
const call = (...calls: ModelCall[]): ModelAnswer => ({ calls, ...USAGE });
const textResponse = (text: string): ModelAnswer => ({ text, ...USAGE });
const commandsOf = async (runId: string): Promise<any[]> =>
  (await eventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
    .map(({ payload }) => payload);
const finished = (runId: string, times: number) =>
  eventually(async () => (await eventsOf(api, runId)).filter(({ kind }) => kind === "run_finished").length >= times, {
    timeoutMs: RUN_TIMEOUT_MS,
  });
/** Waits until the command runs and its event is stored; some programs report it late. */
const sleeps = (runId: string) =>
  eventually(
    async () =>
      processesOfRuns([runId]).some(({ command }) => /^sleep /.test(command)) &&
      (await eventsOf(api, runId)).some(
        ({ kind, payload }) => kind === "tool_start" && JSON.stringify(payload).includes("sleep 600"),
      ),
    { timeoutMs: RUN_TIMEOUT_MS },
  );

for (const one of PROGRAMS)
  (isTried(one) ? describe : describe.skip)(
    isTried(one)
      ? one.title
      : `${one.title} (skipped: ${fileOf(one) === "" ? "no program is named: npm run test:harnesses installs one" : "it needs bubblewrap"})`,
    () => {
      const { shell, platform } = one;
      const start = (prompt: string): Promise<string> => works.startRun((program = one), prompt);

      test("edits a file, commits, reports an artifact and opens a pull request, all visible in the API", async () => {
        const responses = [
          call(shell("echo two > a.txt && git commit -qam two")),
          call(platform("artifact", { file: "a.txt", title: "A" })),
          call(platform("pull_request", { title: "Two" })),
          textResponse("It is two."),
        ];
        lead((step) => responses[step] ?? textResponse("Nothing more."));
        const runId = await start("Make it two.");
        const { artifacts } = await succeeded(api, runId);
        expect(artifacts.map(({ artifact_type: type }: any) => type).toSorted()).toEqual(["FILE", "PULL_REQUEST"]);
        expect([
          git(works.repository, "show", `agent/${runId}:a.txt`),
          git(works.repository, "log", "--format=%s", `main..agent/${runId}`),
        ]).toEqual(["two\n", "two\n"]);
        expect((await messagesOf(api, runId)).at(-1)).toBe("It is two.");
        expect(JSON.stringify(await eventsOf(api, runId))).not.toContain(KEY);
        expect(models.requests.every(({ key }) => key === KEY)).toBe(true);
      });

      test("accepts a follow-up during a tool call, is not interrupted by others, and is continued on another worker after its end", async () => {
        lead((_step, text) => {
          if (text.includes("Who was it?"))
            return text.includes("Say hello to Ada") ? textResponse("It was Ada.") : textResponse("I have forgotten.");
          return text.includes("Say hello to Ada") ? textResponse("Hello Ada.") : call(shell("sleep 600"));
        });
        const runId = await start("Sleep.");
        await sleeps(runId);
        expect((await api.call("POST", `/agent/runs/${runId}/interrupt`)).status).toBe(422);
        expect(
          await api.post(`/agent/runs/${runId}/followups`, { message: "Stop that. Say hello to Ada." }),
        ).toMatchObject({ outcome: "live_session" });
        await succeeded(api, runId);
        expect([await messagesOf(api, runId), (await commandsOf(runId)).map(({ state }) => state)]).toEqual([
          ["Hello Ada."],
          ["interrupted"],
        ]);

        await workers.at(-1)!.kill();
        nextWorker();
        expect(await api.post(`/agent/runs/${runId}/followups`, { message: "Who was it?" })).toMatchObject({
          outcome: "handoff_execution",
        });
        await finished(runId, 2);
        await succeeded(api, runId);
        expect((await messagesOf(api, runId)).at(-1)).toBe("It was Ada.");
      });

      test("resumes on another worker when its worker is killed during a tool call, without a remaining process or a repeated commit", async () => {
        lead((_step, text) => {
          // The output of the last command may have been lost with the worker, but the call itself is stored.
          if (text.includes("were interrupted"))
            return text.includes("commit -qam two") ? textResponse("I went on.") : textResponse("I have forgotten.");
          return text.includes("done-/workspace")
            ? call(shell("sleep 600"))
            : call(shell("echo two > a.txt && git commit -qam two && echo done-$PWD"));
        });
        const runId = await start("Make it two.");
        await sleeps(runId);
        await eventually(async () => (await eventsOf(api, runId)).some(({ kind }) => kind === "checkpoint"), {
          timeoutMs: RUN_TIMEOUT_MS,
        });
        const orphans = processesOfRuns([runId]).map(({ pid }) => pid);
        workers.at(-1)!.signal("SIGKILL");
        nextWorker();
        await succeeded(api, runId);
        expect(processesOfRuns([runId]).filter(({ pid }) => orphans.includes(pid))).toEqual([]);
        expect((await messagesOf(api, runId)).at(-1)).toBe("I went on.");

        const responses = [call(platform("pull_request", { title: "Two" })), textResponse("It is open.")];
        lead((step) => responses[step] ?? textResponse("Nothing more."));
        await api.post(`/agent/runs/${runId}/followups`, { message: "Open a pull request." });
        await finished(runId, 2);
        await succeeded(api, runId);
        expect(git(works.repository, "log", "--format=%s", `main..agent/${runId}`)).toBe("two\n");
      });

      test("runs commands after its plan is approved", async () => {
        const responses = [
          call(platform("plan", { title: "P", markdown: "M" })),
          call(shell("echo two > a.txt && cat a.txt")),
          textResponse("Done."),
        ];
        lead((step) => responses[step] ?? textResponse("Nothing more."));
        const runId = await works.startRun((program = one), "Plan, then do it.", { mode: "plan" });
        await waitForState(api, runId, "BLOCKED");
        await api.post(`/agent/runs/${runId}/followups`, { message: "Go ahead." });
        await succeeded(api, runId);
        const commands = (await commandsOf(runId)).map(({ state, output }) => [state, output.output]);
        expect(commands).toEqual([["completed", expect.stringContaining("two")]]);
      });

      test("is cancelled without a remaining process", async () => {
        lead(() => call(shell("setsid sleep 600 & sleep 600")));
        const runId = await start("Sleep.");
        await sleeps(runId);
        await api.post(`/agent/runs/${runId}/cancel`);
        await waitForState(api, runId, "CANCELLED");
        await eventually(() => expect(processesOfRuns([runId])).toEqual([]), { timeoutMs: RUN_TIMEOUT_MS });
      });
    },
  );

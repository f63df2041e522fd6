/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { type Deployment, processesWith, Program } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import {
  eventsOf,
  waitForState,
  runOf,
  RUN_TIMEOUT_MS,
  script,
  waitForEvent,
  shellOutputs,
  startRun,
} from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let worker: Program;
let env: Record<string, string>;
const startWorker = () => (worker = new Program("worker/src/main.ts", { log: platform.path("worker.log"), env }));

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: 5 });
  api = await connect(platform);
  const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, { name: "worker", kind: "worker" });
  env = {
    MILLWRIGHT_URL: platform.url,
    MILLWRIGHT_WORKER_KEY: key,
    MILLWRIGHT_WORKER_ID: "one",
    MILLWRIGHT_WORKER_DIR: platform.path("worker"),
    MILLWRIGHT_SANDBOX: "bwrap",
    MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: platform.path("repositories"),
  };
  startWorker();
});
afterAll(async () => {
  await worker?.kill();
  await platform?.remove();
});

/** Starts a run whose environment setup fails, and waits until it has failed. */
async function notSetUp(minutes: number): Promise<any> {
  const config = {
    name: `retained ${minutes}`,
    setup_commands: ["echo half > half.txt; exit 7"],
    failure_session_retention_minutes: minutes,
  };
  const { uid } = await api.post("/agent/environments", { config });
  return waitForState(api, await startRun(api, script("say: never"), { config: { environment_id: uid } }), "FAILED");
}
/** Waits until the platform has detected the loss of the worker of the debug window. */
const lost = (runId: string): Promise<any> =>
  eventually(
    async () => {
      const run = await runOf(api, runId);
      return !run.debug_agent_available && run;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 20 },
  );
const processesOf = (runId: string): number => processesWith(`MILLWRIGHT_RUN_ID=${runId}`).length;
const fatesOf = async (runId: string) =>
  (await api.get(`/agent/runs/${runId}/followups`)).followups.map(({ message, state, reason }: any) => [
    message,
    state,
    reason,
  ]);
const followUp = (runId: string, message: string) => api.post(`/agent/runs/${runId}/followups`, { message });
/** Returns the fields that no event in the debug window, nor its end, may change. */
const lasting = ({
  state,
  status_message: { message, error_code: code, retryable },
  finished_at: finished,
  run_time: time,
}: any) => ({ state, message, code, retryable, finished, time });

describe("a run that failed during environment setup, with a debug window", () => {
  needs(
    "bwrap",
    "accepts follow-ups in the retained workspace, does not change state, and loses them with its worker",
    async () => {
      const failed = await notSetUp(20);
      const { run_id: id } = failed;
      expect(failed).toMatchObject({
        debug_agent_available: true,
        status_message: { error_code: "environment_setup_failed", session_debug_until: expect.any(String) },
      });
      const command = script("shell: cat half.txt");
      expect(await followUp(id, command)).toMatchObject({ outcome: "live_session" });
      await waitForEvent(api, id, ({ kind }) => kind === "turn_end");
      expect(await shellOutputs(api, id)).toEqual(["half\n"]);
      expect(lasting(await runOf(api, id))).toEqual(lasting(failed));
      expect((await api.call("POST", `/agent/runs/${id}/cancel`)).status).toBe(400);

      const busy = script("shell: sleep 600");
      for (const message of [busy, "Are you there?"]) {
        expect(await followUp(id, message)).toMatchObject({ outcome: "live_session" });
        // Nothing is delivered before the command ends.
        await waitForEvent(
          api,
          id,
          ({ kind, payload }) => kind === "tool_start" && payload.input.command === "sleep 600",
        );
      }
      await worker.kill();
      const after = await lost(id);
      expect([lasting(after), after.debug_agent_available, after.status_message.session_debug_until]).toEqual([
        lasting(failed),
        false,
        undefined,
      ]);
      // The handoff happens at once, not only after the reaper has closed the debug window.
      expect(await followUp(id, "Go on.")).toMatchObject({ outcome: "handoff_execution" });
      const fates = [
        [command, "delivered", undefined],
        [busy, "delivered", undefined],
        ["Are you there?", "undeliverable", "debug_session_lost"],
      ];
      expect(await fatesOf(id)).toEqual([...fates, ["Go on.", "queued", undefined]]);
      await waitForEvent(
        api,
        id,
        ({ kind, payload }) => kind === "debug_window_ended" && payload.reason === "worker_lost",
      );
      await api.post(`/agent/runs/${id}/cancel`, {});
      await eventually(() => processesOf(id) === 0, { timeoutMs: RUN_TIMEOUT_MS });
      startWorker();
    },
  );

  needs("bwrap", "is removed when the window ends, and the next follow-up begins a new execution", async () => {
    const { run_id: id, ...failed } = await notSetUp(1);
    await waitForEvent(
      api,
      id,
      ({ kind, payload }) => kind === "debug_window_ended" && payload.reason === "window_expired",
    );
    const after = await runOf(api, id);
    expect([lasting(after), after.debug_agent_available, after.is_sandbox_running, processesOf(id)]).toEqual([
      lasting(failed),
      false,
      false,
      0,
    ]);
    const [instance] = (await readdir(platform.path("worker"))).filter((name) => name.startsWith("instance-"));
    await eventually(async () => (await readdir(platform.path("worker", instance!, "executions"))).length === 0, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    expect(await followUp(id, "Once more.")).toMatchObject({ outcome: "handoff_execution" });
    await eventually(
      async () => (await eventsOf(api, id)).filter(({ kind }) => kind === "setup_command").length === 2,
      { timeoutMs: RUN_TIMEOUT_MS },
    );
  });
});

describe("a run that waits for an answer", () => {
  needs(
    "bwrap",
    "continues in its own directory on its worker, and in the saved workspace on another one",
    async () => {
      const readFile = "shell: stat -c %i kept.txt && cat kept.txt";
      const id = await startRun(
        api,
        script("write: {path: kept.txt, content: kept}", readFile, "ask: First?", readFile, "ask: Second?", readFile),
      );
      await waitForState(api, id, "BLOCKED");
      await followUp(id, "Yes.");
      await waitForEvent(api, id, ({ kind, payload }) => kind === "run_finished" && payload.message === "Second?");
      await worker.kill();
      startWorker();
      await followUp(id, "Yes.");
      await waitForState(api, id, "SUCCEEDED");
      const [first, second, third] = await shellOutputs(api, id);
      expect([first, second === first, third === first, third]).toEqual([
        expect.stringMatching(/^\d+\nkept$/),
        true,
        expect.any(Boolean),
        expect.stringMatching(/\nkept$/),
      ]);
      expect((await eventsOf(api, id)).filter(({ kind }) => kind === "workspace_reused")).toHaveLength(1);
    },
  );
});

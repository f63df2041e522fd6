import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { type Deployment, Program } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { DispatchingWorker } from "./support/dispatching-worker.ts";
import { onDeployments, SLOW_MS, startPlatform } from "./support/deployment.ts";
import {
  ended,
  eventsOf,
  waitForState,
  runOf,
  script,
  waitForEvent,
  shellOutputs,
  startRun,
  succeeded,
} from "./support/runs.ts";

onDeployments(["standalone"], (name) => {
  let platform: Deployment;
  let api: Client;
  let dispatcher: DispatchingWorker;
  const startOnDispatcher = (prompt: string): Promise<string> =>
    startRun(api, prompt, { config: { worker_host: "depot" } });

  beforeAll(async () => {
    // Unscaled lease durations, because no worker may be lost.
    platform = await startPlatform({ workers: 0, timeScale: 1 }, name);
    api = await connect(platform);
    dispatcher = await DispatchingWorker.start(platform, api);
  });
  afterAll(async () => {
    await dispatcher?.remove();
    await platform?.remove();
  });

  describe("the command backend", () => {
    test("executes a run on a machine of its own, and reports it as an ordinary worker does", async () => {
      const prompt = script(
        "say: Working.",
        "shell: echo hello > hello.txt; cat hello.txt",
        "plan: {title: Plan, markdown: '# Plan'}",
      );
      const there = await startOnDispatcher(prompt);
      await succeeded(api, there);
      const ordinary = new Program("worker/src/main.ts", {
        log: platform.path("ordinary.log"),
        env: {
          MILLWRIGHT_URL: platform.url,
          MILLWRIGHT_WORKER_KEY: dispatcher.key,
          MILLWRIGHT_WORKER_ID: "ordinary",
          MILLWRIGHT_WORKER_DIR: platform.path("ordinary"),
          MILLWRIGHT_SANDBOX: "none",
          MILLWRIGHT_WORKER_USER: "root",
        },
      });
      try {
        const here = await startRun(api, prompt, { config: { worker_host: "ordinary" } });
        await succeeded(api, here);
        /** Sorted, because the order of the platform's own events among the worker's is not defined. */
        const reportOf = async (runId: string) =>
          (await eventsOf(api, runId))
            .map(({ kind, payload }) => `${kind} ${payload.name ?? payload.text ?? payload.reason ?? ""}`)
            .toSorted();
        expect(await reportOf(there)).toEqual(await reportOf(here));
        expect(await shellOutputs(api, there)).toEqual(["hello\n"]);
        const timeline = async (runId: string) =>
          (await api.get(`/agent/runs/${runId}/timeline`)).events.map(({ event_type: type }: any) => type);
        expect(await timeline(there)).toEqual(await timeline(here));
      } finally {
        await ordinary.kill();
      }
      await eventually(() => dispatcher.machinesOf(there) === 0, { timeoutMs: SLOW_MS });
      expect(dispatcher.cancelledFor(there)).toEqual([]);
    });

    test("ends a cancelled run on its machine, and cancels the machine", async () => {
      const id = await startOnDispatcher(script("shell: sleep 600"));
      await waitForEvent(api, id, ({ kind }) => kind === "tool_start");
      await api.post(`/agent/runs/${id}/cancel`);
      expect((await ended(api, id)).state).toBe("CANCELLED");
      await eventually(() => dispatcher.machinesOf(id) === 0, { timeoutMs: SLOW_MS });
      await eventually(() => dispatcher.cancelledFor(id).length > 0, { timeoutMs: SLOW_MS });
      expect(dispatcher.cancelledFor(id)).toEqual(["cancelled"]);
    });

    test("saves the workspace of a cancelled run, and a follow-up continues with it on another machine", async () => {
      const started = platform.path("started");
      const id = await startOnDispatcher(script(`shell: echo start > started.txt; touch '${started}'; sleep 600`));
      await eventually(() => existsSync(started), { timeoutMs: SLOW_MS });
      await api.post(`/agent/runs/${id}/cancel`);
      const message = script("shell: cat started.txt");
      expect(await api.post(`/agent/runs/${id}/followups`, { message })).toMatchObject({
        outcome: "handoff_execution",
      });
      await succeeded(api, id);
      expect((await shellOutputs(api, id)).at(-1)).toBe("start\n");
    });

    test("continues on the machine if the dispatching worker is killed, and watches the machine again", async () => {
      const go = platform.path("go");
      const id = await startOnDispatcher(
        script(`shell: until test -e '${go}'; do sleep 0.1; done; echo went on`, "say: Done."),
      );
      await waitForEvent(api, id, ({ kind }) => kind === "tool_start");
      await dispatcher.kill();
      await dispatcher.launch();
      expect(dispatcher.output()).toContain("reattached to a machine");
      await writeFile(go, "");
      await succeeded(api, id);
      expect(await shellOutputs(api, id)).toEqual(["went on\n"]);
      expect((await eventsOf(api, id)).filter(({ kind }) => kind === "worker_lost" || kind === "run_queued")).toEqual(
        [],
      );
      expect(dispatcher.cancelledFor(id)).toEqual([]);
    });

    test("reports why there is no machine, and the run continues when there is one again", async () => {
      await writeFile(platform.path("closed-once"), "");
      const id = await startOnDispatcher(script("say: At last."));
      const failed = await waitForEvent(api, id, ({ kind }) => kind === "dispatch_failed");
      expect(failed.payload).toMatchObject({
        worker_host: "depot",
        reason: "dispatch_command",
        message: expect.stringContaining("the depot is closed"),
      });
      await succeeded(api, id);
      await writeFile(platform.path("closed"), "");
      const given = await waitForState(api, await startOnDispatcher(script("say: never")), "ERROR");
      expect(given.status_message).toMatchObject({
        error_code: "resource_unavailable",
        retryable: true,
        message: expect.stringContaining("the depot is closed"),
      });
      await rm(platform.path("closed"));
      expect((await runOf(api, given.run_id)).state).toBe("ERROR");
    });
  });
});

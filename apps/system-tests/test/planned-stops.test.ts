/* oxlint-disable jest/no-standalone-expect -- onDeployments() declares the tests */
import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { type Deployment, Platform, Program } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { onDeployments, startPlatform } from "./support/deployment.ts";
import { ended, eventsOf, script, waitForEvent, startRun, succeeded } from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

const attemptStarts = (api: Client, runId: string, attempt: number) =>
  waitForEvent(api, runId, ({ kind, attempt: of }) => kind === "tool_start" && of === attempt);
const stopsOf = (events: readonly any[]) =>
  events.filter(({ kind }) => kind === "worker_stopped").map(({ payload }) => [payload.attempt, payload.reason]);
const lossesOf = (events: readonly any[]) => events.filter(({ kind }) => kind === "worker_lost");

onDeployments(["standalone", "processes"], (name) => {
  let platform: Deployment;
  let api: Client;
  let workerKey: string;
  let worker: Program | undefined;

  beforeAll(async () => {
    platform = await startPlatform({ workers: 0 }, name); // Unscaled times: a lease lasts 45 s.
    api = await connect(platform);
    workerKey = (await api.post(`/team/${await teamOf(api)}/keys`, { name: "workers", kind: "worker" })).api_key;
  });
  afterEach(() => worker?.kill());
  afterAll(() => platform?.remove());

  function startWorker(env: Readonly<Record<string, string>> = {}): Program {
    const own = {
      MILLWRIGHT_URL: platform.url,
      MILLWRIGHT_WORKER_KEY: workerKey,
      MILLWRIGHT_WORKER_DIR: platform.path("worker"),
      MILLWRIGHT_SANDBOX: "none",
      MILLWRIGHT_WORKER_USER: "root",
    };
    return (worker = new Program("worker/src/main.ts", {
      log: platform.path("worker.log"),
      env: { ...own, MILLWRIGHT_WORKER_DRAIN: "1ms", ...env },
    }));
  }

  describe("a worker that stops in order", () => {
    test("returns its run at once: three planned restarts in a row lose nothing and do not end the run", async () => {
      const flag = platform.path(`${name}-flag`);
      const runId = await startRun(
        api,
        script("say: begin", `shell: "until test -e ${flag}; do sleep 0.1; done"`, "say: end"),
      );
      for (let attempt = 1; attempt <= 3; attempt++) {
        const stopping = startWorker();
        await attemptStarts(api, runId, attempt);
        expect(await stopping.stop()).toBe(true);
      }
      writeFileSync(flag, "");
      startWorker();
      await succeeded(api, runId);
      const events = await eventsOf(api, runId);
      expect(stopsOf(events)).toEqual([1, 2, 3].map((attempt) => [attempt, "worker_stopping"]));
      expect(lossesOf(events)).toEqual([]);
    });
  });

  describe("a worker whose sandboxes start too slowly", () => {
    test("has its run retried three times, each with the cause, which the end of the run states", async () => {
      const runId = await startRun(api, script("say: never"));
      startWorker({ MILLWRIGHT_SANDBOX_START_TIMEOUT: "1ms" });
      const run = await ended(api, runId);
      expect(run).toMatchObject({
        state: "ERROR",
        status_message: { error_code: "resource_unavailable", retryable: true },
      });
      expect(run.status_message.message).toMatch(
        /The sandbox could not be started\. It did not respond within 0\.001 s\./,
      );
      const failures = (await eventsOf(api, runId)).filter(({ kind }) => kind === "attempt_failed");
      expect(failures.map(({ payload }) => [payload.attempt, payload.reason])).toEqual(
        [1, 2, 3, 4].map((attempt) => [attempt, "sandbox_start_failed"]),
      );
    });
  });
});

describe("a standalone platform that is restarted", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await Platform.start({
      workers: 1,
      env: { MILLWRIGHT_SANDBOX: "none", MILLWRIGHT_WORKER_USER: "root" },
    });
  });
  afterAll(() => platform?.remove());

  test("continues its runs at once: its workers return them before it stops", async () => {
    const api = await connect(platform);
    const flag = platform.path("flag");
    const runId = await startRun(
      api,
      script("say: begin", `shell: "until test -e ${flag}; do sleep 0.1; done"`, "say: end"),
    );
    for (let attempt = 1; attempt <= 3; attempt++) {
      await attemptStarts(api, runId, attempt);
      expect(await platform.stop()).toEqual([]);
      await platform.start();
    }
    writeFileSync(flag, "");
    await succeeded(api, runId);
    const events = await eventsOf(api, runId);
    expect(stopsOf(events)).toEqual([1, 2, 3].map((attempt) => [attempt, "worker_stopping"]));
    expect(lossesOf(events)).toEqual([]);
  });
});

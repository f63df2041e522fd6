import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { eventually } from "@millwright/testing";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker, type Lease } from "./support/test-worker.ts";
import { runOf, startRun } from "./support/runs.ts";
import { ENDED, LIVE, shown, States, type RunInState } from "./support/states.ts";

let platform: Deployment;
let api: Client;
let worker: TestWorker;
let states: States;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: 1 });
  api = await connect(platform);
  worker = await TestWorker.register(api);
  states = new States(api, worker);
});
afterAll(() => platform?.remove());
afterEach(() => states.clear());

const anOffer = (): Promise<Lease> => states.offer();
const createRunIn = (state: string): Promise<RunInState> => states.createRunIn(state);
const aChild = (run: RunInState): Promise<string> => states.aChild(run);
const cancel = (runId: string, query = "") => api.call("POST", `/agent/runs/${runId}/cancel${query}`);
const followUp = (runId: string, message = "And then?") => api.post(`/agent/runs/${runId}/followups`, { message });
const stateOf = async (runId: string): Promise<string> => (await runOf(api, runId)).state;

test.each([...LIVE, ...ENDED])("a run can be brought to %s", async (state) => {
  const { runId } = await createRunIn(state);
  const run = await runOf(api, runId);
  expect([run.state, run.finished_at === null, run.started_at === null]).toEqual([
    shown(state),
    (LIVE as readonly string[]).includes(state),
    ["QUEUED", "PENDING", "CLAIMED"].includes(state),
  ]);
});

test("a status message has at most 8,192 characters", async () => {
  const { runId, lease } = await createRunIn("INPROGRESS");
  const error = {
    code: "agent_reported_failure",
    message: "x".repeat(1_000_000),
    retryable: false,
    reason: "agent_failed",
  };
  await worker.complete(lease, "FAILED", { error });
  const { status_message: status } = await runOf(api, runId);
  expect([status.message.length, status.message.slice(0, 8_000)]).toEqual([8_192, "x".repeat(8_000)]);
});

describe("cancelling", () => {
  test.each(["QUEUED", "CLAIMED", "INPROGRESS", "waiting"])(
    "a run that is %s returns its id, and the run is CANCELLED at once",
    async (state) => {
      const { runId } = await createRunIn(state);
      expect(await cancel(runId)).toMatchObject({ status: 200, body: runId });
      expect(await runOf(api, runId)).toMatchObject({ state: "CANCELLED", finished_at: expect.any(String) });
      const { events } = await api.get(`/agent/runs/${runId}/timeline`);
      expect(events.at(-1)).toMatchObject({
        event_type: "oz_run_cancelled",
        payload: { cancelled_by: expect.any(String) },
      });
    },
  );
  test("instructs the worker to stop, and revokes the run's token at once", async () => {
    const active = await createRunIn("INPROGRESS");
    await cancel(active.runId);
    const { status, directives } = await worker.heartbeat(active.lease);
    expect([status, directives.map((one) => one.cancel !== undefined)]).toEqual(["STOP", [true]]);
    for (const ask of [
      api.call("GET", "/whoami", { key: active.assignment!.runToken }),
      api.call("POST", "/agent/runs", { body: { prompt: "late" }, key: active.assignment!.runToken }),
    ])
      expect((await ask).status).toBe(401);
  });
  test("alone leaves the children; with the tree it cancels all active ones, also offered ones", async () => {
    const root = await createRunIn("INPROGRESS");
    const child = await aChild(root);
    const childLease = await anOffer();
    const childAssignment = (await worker.accept(childLease))!;
    const grandchild = await aChild({ runId: child, lease: childLease, assignment: childAssignment });
    const open = await anOffer();
    expect([await stateOf(child), await stateOf(grandchild)]).toEqual(["CLAIMED", "PENDING"]);
    await cancel(root.runId);
    expect([await stateOf(child), await stateOf(grandchild)]).toEqual(["CLAIMED", "PENDING"]);
    expect(await cancel(child, "?tree=true")).toMatchObject({ status: 200 });
    expect([await stateOf(child), await stateOf(grandchild)]).toEqual(["CANCELLED", "CANCELLED"]);
    expect(await worker.accept(open)).toBeUndefined();
    const { runToken } = childAssignment;
    const late = [
      api.call("GET", "/whoami", { key: runToken }),
      api.call("POST", "/agent/runs", { body: { prompt: "late" }, key: runToken }),
    ];
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual([401, 401]);
    const { executionId, attempt } = childLease;
    await expect(
      worker.call("ReportUsage", {
        executionId,
        attempt,
        callId: "late",
        modelId: "scripted",
        usage: { inputTokens: "1" },
      }),
    ).rejects.toThrow("lease_lost");
  });
});

describe("a follow-up", () => {
  test.each(["QUEUED", "PENDING"])(
    "to a run that is %s is appended to its prompt, and reaches the agent",
    async (state) => {
      const { runId, lease } = await createRunIn(state);
      expect(await followUp(runId)).toEqual({ outcome: "queued_prompt", followup_id: null });
      expect(await runOf(api, runId)).toMatchObject({
        prompt: "Do it.\n\nAnd then?",
        submitted_prompt: "Do it.\n\nAnd then?",
      });
      expect((await api.get("/agent/runs?q=AND%20then%20it&limit=500")).runs.map((run: any) => run.run_id)).toContain(
        runId,
      );
      const { inputs } = (await worker.accept(state === "PENDING" ? lease : await anOffer()))!;
      expect(inputs.map((one) => one.text)).toEqual(["Do it.", "And then?"]);
    },
  );
  test.each([
    ["CLAIMED", "queue_pending"],
    ["INPROGRESS", "live_session"],
  ])("to a run that is %s is a %s, sent to its worker once", async (state, outcome) => {
    const { runId, lease } = await createRunIn(state);
    const answer = await followUp(runId);
    expect(answer).toEqual({ outcome, followup_id: expect.any(String) });
    const { directives } = await worker.heartbeat(lease);
    expect(directives.map((one) => one.followup?.message)).toMatchObject([
      { uid: answer.followup_id, text: "And then?" },
    ]);
  });
  test("to a run that waits for its children wakes it", async () => {
    const { runId } = await createRunIn("waiting");
    expect(await followUp(runId)).toEqual({ outcome: "queue_pending", followup_id: expect.any(String) });
    expect(["QUEUED", "INPROGRESS"]).toContain(await stateOf(runId));
  });
  test.each(ENDED)("to a run that is %s continues the same run in a new execution", async (state) => {
    const { runId } = await createRunIn(state);
    expect(await followUp(runId)).toEqual({ outcome: "handoff_execution", followup_id: expect.any(String) });
    expect(await runOf(api, runId)).toMatchObject({ state: "QUEUED", finished_at: null });
    const { runUid, executionSeq, inputs } = (await worker.accept(await anOffer()))!;
    expect([runUid, executionSeq, inputs.map((one) => one.text)]).toEqual([runId, 2, ["And then?"]]);
  });
});

describe("an interrupt", () => {
  const interrupt = (path: string) => api.call("POST", `${path}/interrupt`);
  test("of a run that is INPROGRESS is accepted, sent to its worker, and the run accepts follow-ups; also through its conversation", async () => {
    const { runId, lease } = await createRunIn("INPROGRESS");
    const { conversation_id: conversation } = await runOf(api, runId);
    for (const path of [`/agent/runs/${runId}`, `/agent/conversations/${conversation}`])
      expect(await interrupt(path)).toMatchObject({ status: 202, body: { run_id: runId } });
    expect((await worker.heartbeat(lease)).directives.map((one) => one.interrupt !== undefined)).toEqual([true, true]);
    expect(await followUp(runId)).toMatchObject({ outcome: "live_session" });
    expect(await stateOf(runId)).toBe("INPROGRESS");
  });
  test("of a run that waits for its children changes nothing", async () => {
    const { runId } = await createRunIn("waiting");
    expect(await interrupt(`/agent/runs/${runId}`)).toMatchObject({ status: 202 });
    expect(await stateOf(runId)).toBe("INPROGRESS");
  });
});

describe("a retry", () => {
  test.each(ENDED)(
    "of a run that is %s creates a linked run with the same configuration, once per key",
    async (state) => {
      const { runId } = await createRunIn(state);
      const key = { headers: { "idempotency-key": randomUUID() } };
      const [made, again] = [
        await api.post(`/agent/runs/${runId}/retry`, undefined, key),
        await api.post(`/agent/runs/${runId}/retry`, undefined, key),
      ];
      expect([made.state, again.run_id]).toEqual(["QUEUED", made.run_id]);
      const [first, second] = [await runOf(api, runId), await runOf(api, made.run_id)];
      expect([first.state, second.retry_of_run_id, second.prompt, second.agent_config]).toEqual([
        state,
        runId,
        first.prompt,
        first.agent_config,
      ]);
      expect(second.conversation_id).not.toBe(first.conversation_id);
    },
  );
  test.each(LIVE)("of a run that is %s is rejected, and creates nothing", async (state) => {
    const { runId } = await createRunIn(state);
    const count = async () => (await api.get("/agent/runs?limit=500")).runs.length;
    const before = await count();
    expect(await api.call("POST", `/agent/runs/${runId}/retry`)).toMatchObject({
      status: 409,
      body: { reason: "run_not_finished", error_code: "conflict", retryable: false },
    });
    expect(await count()).toBe(before);
  });
});

describe("the outcome of a follow-up", () => {
  const fates = async (runId: string) =>
    (await api.get(`/agent/runs/${runId}/followups`)).followups.map(({ message, state, reason }: any) => [
      message,
      state,
      reason,
    ]);
  test("is queued until the agent has it, then delivered", async () => {
    const { runId } = await createRunIn("QUEUED");
    await followUp(runId, "Early.");
    expect(await fates(runId)).toEqual([["Early.", "queued", undefined]]);
    const assignment = (await worker.accept(await anOffer()))!;
    await worker.start(assignment);
    expect(await fates(runId)).toEqual([["Early.", "delivered", undefined]]);
  });
  test("is undeliverable, with the reason, when the run ends first", async () => {
    for (const state of ["QUEUED", "INPROGRESS"]) {
      const { runId, lease } = await createRunIn(state);
      await followUp(runId, "Too late.");
      await cancel(runId);
      // Until the execution has ended, the follow-up may have been delivered.
      if (state === "INPROGRESS") await worker.complete(lease, "CANCELLED");
      expect(await fates(runId)).toEqual([["Too late.", "undeliverable", "run_cancelled"]]);
    }
  });
});

test("a conversation shows the steps of its runs and accepts messages for the newest", async () => {
  const { runId } = await createRunIn("SUCCEEDED");
  const { conversation_id: conversation } = await runOf(api, runId);
  expect(await api.get(`/agent/conversations/${conversation}`)).toEqual(
    await api.get(`/agent/runs/${runId}/conversation`),
  );
  expect(await api.post(`/agent/conversations/${conversation}/followups`, { message: "On." })).toEqual({
    outcome: "handoff_execution",
    followup_id: expect.any(String),
    run_id: runId,
  });
});

test("a tree has at most ten levels below its root", async () => {
  let parent = await createRunIn("INPROGRESS");
  for (let depth = 1; depth <= 10; depth++) {
    const runId = await aChild(parent);
    const lease = await anOffer();
    parent = { runId, lease, assignment: (await worker.accept(lease))! };
  }
  expect(
    await api.call("POST", "/agent/runs", { body: { prompt: "Help." }, key: parent.assignment!.runToken }),
  ).toMatchObject({ status: 400, body: { reason: "depth_exceeded" } });
});

test("the queue returns a run's position and why it waits", async () => {
  const { uid: agent } = await api.post("/agent/identities", { name: "queued" });
  const [first, second] = [await startRun(api, "one"), await startRun(api, "two", { agent_identity_uid: agent })];
  // Under chaos, a repeated long poll of an earlier test can be offered the first run; the offer expires.
  const one = await eventually(async () => {
    const [ahead, behind] = [await api.get(`/agent/runs/${first}/queue`), await api.get(`/agent/runs/${second}/queue`)];
    expect([ahead.state, ahead.owner_position, behind.owner_position]).toEqual(["QUEUED", 1, 2]);
    return ahead;
  });
  expect([one.reason, one.message.length > 0]).toEqual([expect.stringMatching(/^[a-z_]+$/), true]);
  await cancel(first);
  expect((await api.get(`/agent/runs/${second}/queue`)).owner_position).toBe(1);
  expect(await api.get(`/agent/runs/${first}/queue`)).toMatchObject({ state: "CANCELLED", reason: "none" });
});

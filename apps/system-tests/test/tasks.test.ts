import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { randomUUID } from "node:crypto";
import OzAPI from "oz-agent-sdk";
import { type Deployment, OWNER_KEY } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker, type Assignment, type Lease } from "./support/test-worker.ts";
import { runOf, startRun } from "./support/runs.ts";
import { aFactory, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let worker: TestWorker;
let factory: string;
let conversation: string;
let runId: string;
/** Email address of the client's own user. */
let email: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: 1 });
  api = await connect(platform);
  worker = await TestWorker.register(api);
  factory = await aFactory(api, definitionFiles("No script here."));
  email = (await api.get("/whoami")).principal.email;
});
afterAll(() => platform?.remove());
beforeEach(async () => {
  runId = await startRun(api, "Do it.");
  conversation = (await runOf(api, runId)).conversation_id;
});

const TASKS = () => `/factory/${factory}/tasks`;
const aTask = (more: object = {}): Promise<any> =>
  api.post(TASKS(), { title: "Fix it", conversation_id: conversation, ...more });
const list = async (query: string): Promise<any[]> => (await api.get(`${TASKS()}?${query}&limit=100`)).tasks;
const listed = async (task: any, query = ""): Promise<any> => (await list(query)).find(({ uid }) => uid === task.uid);
const stageOf = async (task: any): Promise<string> => (await api.get(`${TASKS()}/${task.uid}`)).stage;
const cancelTask = (task: any, ask = {}) => api.call("POST", `${TASKS()}/${task.uid}/cancel`, ask);
/** Returns the accepted execution of this test's run; completes the executions of other runs. */
async function acceptNext(): Promise<Assignment & Lease> {
  for (;;) {
    const lease = await worker.offer();
    const assignment = (await worker.accept(lease))!;
    await worker.start(assignment);
    if (assignment.runUid === runId) return assignment;
    await worker.complete(lease, "DONE");
  }
}

describe("creating a task", () => {
  test("binds it to the conversation: TRIAGE, the newest run as snapshot, its creator as author", async () => {
    const task = await aTask();
    expect(task).toMatchObject({
      title: "Fix it",
      description: null,
      stage: "TRIAGE",
      conversation_id: conversation,
      run_id: runId,
      factory_uid: factory,
      outputs: [],
      author: { email: email },
    });
    expect(await api.get(`${TASKS()}/${task.uid}`)).toEqual(task);
    expect(await api.get(`/factory/${factory}/task-by-conversation?conversation_id=${conversation}`)).toEqual(task);
    expect(await api.get(`/factory/${factory}/task-by-run?run_id=${runId}`)).toEqual(task);
  });

  test("accepts a description and a stage", async () => {
    expect(await aTask({ description: "Why", stage: "REVIEW" })).toMatchObject({ description: "Why", stage: "REVIEW" });
  });

  test("is rejected for a conversation that has a live task of any stage and factory, until that is deleted", async () => {
    const task = await aTask({ stage: "COMPLETE" });
    const other = await aFactory(api, definitionFiles("No script here."));
    for (const at of [factory, other]) {
      expect(
        await api.call("POST", `/factory/${at}/tasks`, { body: { title: "Again", conversation_id: conversation } }),
      ).toMatchObject({
        status: 409,
        body: { error_code: "conflict", reason: "conversation_bound", retryable: false },
      });
    }
    await api.delete(`${TASKS()}/${task.uid}`);
    expect(await api.call("GET", `${TASKS()}/${task.uid}`)).toMatchObject({ status: 404 });
    expect(await api.call("DELETE", `${TASKS()}/${task.uid}`)).toMatchObject({ status: 404 });
    expect(await listed(task)).toBeUndefined();
    expect((await api.get(`/agent/runs/${runId}`)).conversation_id).toBe(conversation);
    expect(await api.post(`/factory/${other}/tasks`, { title: "Again", conversation_id: conversation })).toMatchObject({
      title: "Again",
    });
  });

  test("by many concurrent requests over two factories creates exactly one", async () => {
    const other = await aFactory(api, definitionFiles("No script here."));
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_one, n) =>
        api.call("POST", `/factory/${n % 2 ? factory : other}/tasks`, {
          body: { title: `Race ${n}`, conversation_id: conversation },
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(15);
  });

  test("repeated with its key returns the first response, whatever happened to the task since; with another body it is a conflict", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const post = (title: string) =>
      api.call("POST", TASKS(), { body: { title, conversation_id: conversation }, headers });
    const first = await post("One");
    await api.patch(`${TASKS()}/${first.body.uid}`, { title: "Changed", stage: "SPEC" });
    const [again, other] = [await post("One"), await post("Two")];
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(other).toMatchObject({ status: 409, body: { retryable: false } });
  });

  test("needs a conversation whose newest run belongs to the team: unknown, foreign and personal ones get the same response", async () => {
    const stranger = await aTeam(api, "Strangers");
    const theirs = (await runOf(stranger, await startRun(stranger, "Theirs."))).conversation_id;
    const own = (await api.post("/agent/runs", { prompt: "Mine.", team: false })).run_id;
    const personal = (await runOf(api, own)).conversation_id;
    const answers = [];
    for (const id of [randomUUID(), "x", theirs, personal])
      answers.push(await api.call("POST", TASKS(), { body: { title: "T", conversation_id: id } }));
    expect(answers.map(({ status, body }) => [status, body.reason])).toEqual(
      Array(4).fill([400, "invalid_conversation"]),
    );
  });

  test.each([{}, { title: "T" }, { title: " " }, { title: "T", stage: "DONE" }, { title: 1 }])(
    "refuses %j",
    async (body) => {
      const answer = await api.call("POST", TASKS(), {
        body: Object.keys(body).length === 1 ? body : { conversation_id: conversation, ...body },
      });
      expect(answer).toMatchObject({ status: 400 });
    },
  );
});

test("an automation is started by changes of people to a task, and not by changes of its own run", async () => {
  const automations = `/factory/${factory}/automations`;
  const { uid } = await api.post(automations, {
    name: "stages",
    prompt: "Go on.",
    triggers: [{ provider: "factory", event: "work_item_stage_changed" }],
  });
  const decided = (count: number): Promise<any[]> =>
    eventually(async (): Promise<any> => {
      const { decisions } = await api.get(`${automations}/${uid}/decisions`);
      return decisions.length === count && decisions.every(({ outcome }: any) => outcome !== "pending")
        ? decisions
        : false;
    });
  const task = await aTask();
  await api.patch(`${TASKS()}/${task.uid}`, { stage: "SPEC" });
  const [fired] = await decided(1);
  expect(fired).toMatchObject({
    outcome: "fired",
    subject: { task_uid: task.uid, previous_stage: "TRIAGE", stage: "SPEC" },
  });
  runId = fired.run_id;
  const assignment = await acceptNext();
  await api.patch(`${TASKS()}/${task.uid}`, { stage: "REVIEW" }, { key: assignment.runToken });
  const { run_id: child } = await api.post(
    "/agent/runs",
    { prompt: "Help.", agent_name: "helper" },
    { key: assignment.runToken },
  );
  const [own] = await decided(2);
  expect(own).toMatchObject({
    outcome: "suppressed",
    run_id: null,
    subject: { by_root_run_uid: runId, previous_stage: "SPEC", stage: "REVIEW" },
  });
  runId = child;
  const childs = await acceptNext();
  await api.patch(`${TASKS()}/${task.uid}`, { stage: "COMPLETE" }, { key: childs.runToken });
  const [childsOwn] = await decided(3);
  expect(childsOwn).toMatchObject({ outcome: "suppressed", subject: { by_root_run_uid: fired.run_id } });
  await worker.complete(childs, "DONE");
  await worker.complete(assignment, "DONE");
  await api.patch(`${TASKS()}/${task.uid}`, { stage: "TRIAGE" });
  expect((await decided(4))[0]).toMatchObject({ outcome: "fired" });
  await api.delete(`${automations}/${uid}`);
});

describe("the list", () => {
  test("shows outputs and ticket with full_list, the current run with include_current_run, and neither without", async () => {
    const dispatched = (await api.post(`/factory/${factory}/runs`, { prompt: "Ticketed.", ticket_ref: "tracker:T-9" }))
      .run_id;
    const task = await eventually(async () => (await list("")).find(({ run_id: id }) => id === dispatched) ?? false);
    for (const member of ["outputs", "ticket_id", "current_run"]) expect(task).not.toHaveProperty(member);
    expect(await listed(task, "full_list=true")).toMatchObject({
      outputs: [],
      ticket_source: "tracker",
      ticket_id: "T-9",
    });
    expect(await listed(task, "include_current_run=true")).toMatchObject({
      current_run: { run_id: dispatched, state: "QUEUED", is_run_type_cancellable: true },
    });
    expect(await listed(task, "include_current_run=true")).not.toHaveProperty("outputs");
  });

  test("shows the outputs of the bound conversation only, a single read those of the whole tree", async () => {
    const task = await aTask();
    const assignment = await acceptNext();
    const child = (await api.post("/agent/runs", { prompt: "Help." }, { key: assignment.runToken })).run_id;
    const lease = await worker.offer();
    const childs = (await worker.accept(lease))!;
    expect(childs.runUid).toBe(child);
    await worker.start(childs);
    for (const [{ executionId, attempt }, name] of [
      [assignment, "own"],
      [childs, "childs"],
    ] as const) {
      await worker.call("CreateArtifact", {
        executionId,
        attempt,
        clientArtifactId: name,
        artifactType: "EXTERNAL_REFERENCE",
        data: { reference_type: "ticket", url: `https://tracker.example/${name}` },
      });
    }
    const urls = (one: any) => one.outputs.map(({ data }: any) => data.url);
    expect(urls(await listed(task, "full_list=true"))).toEqual(["https://tracker.example/own"]);
    expect(urls(await api.get(`${TASKS()}/${task.uid}`))).toEqual([
      "https://tracker.example/childs",
      "https://tracker.example/own",
    ]);
    expect(await api.get(`${TASKS()}/${task.uid}`)).toMatchObject({ updated_at: task.updated_at });
    await worker.complete(lease, "DONE");
    await worker.complete(assignment, "DONE");
  });

  test("retains the snapshot run while the current run changes, and created_by matches the creator of the snapshot", async () => {
    const task = await aTask();
    await worker.complete(await acceptNext(), "DONE");
    const next = (await api.post("/agent/runs", { prompt: "On.", conversation_id: conversation })).run_id;
    expect(await listed(task, "include_current_run=true")).toMatchObject({
      run_id: runId,
      current_run: { run_id: next },
    });
    expect(await listed(task, `created_by=${email.toUpperCase()}`)).toMatchObject({ uid: task.uid });
    expect(await listed(task, `created_by=nobody@example.com&created_by=${email}`)).toMatchObject({ uid: task.uid });
    expect(await list("created_by=nobody@example.com")).toEqual([]);
  });

  test("continues a cursor under its sort and filters only, with any limit and any fields", async () => {
    await aTask();
    await aFactoryTask();
    const { page_info: info } = await api.get(`${TASKS()}?limit=1`);
    const next = (query: string) =>
      api.call("GET", `${TASKS()}?cursor=${encodeURIComponent(info.next_cursor)}&${query}`);
    expect(
      await next("limit=50&full_list=true&include_current_run=true&sort_by=created_at&sort_order=desc"),
    ).toMatchObject({ status: 200 });
    for (const query of ["sort_order=asc", "sort_by=updated_at", `created_by=${email}`, "stage=REVIEW", "q=x"])
      expect(await next(query)).toMatchObject({ status: 400 });
    for (const query of ["full_list=yes", "include_current_run=1", "created_by=", "limit=0", "limit=101"])
      expect(await api.call("GET", `${TASKS()}?${query}`)).toMatchObject({ status: 400 });
  });

  const aFactoryTask = async (): Promise<any> => {
    const run = await startRun(api, "More.");
    return aTask({ conversation_id: (await runOf(api, run)).conversation_id });
  };
});

describe("cancelling a task", () => {
  test("cancels the current run and all its descendants, then the task", async () => {
    const task = await aTask();
    const assignment = await acceptNext();
    const child = (await api.post("/agent/runs", { prompt: "Help." }, { key: assignment.runToken })).run_id;
    const { status, body } = await cancelTask(task);
    expect([status, body.stage, body.uid]).toEqual([200, "CANCELLED", task.uid]);
    for (const id of [runId, child]) expect((await runOf(api, id)).state).toBe("CANCELLED");
    await worker.complete(assignment, "CANCELLED");
    expect(await cancelTask(task)).toMatchObject({ status: 400, body: { reason: "run_already_finished" } });
  });

  test("cancels the newest top-level run and its whole tree: a child in the same conversation, and one that a client executes", async () => {
    const task = await aTask();
    const assignment = await acceptNext();
    const child = (
      await api.post("/agent/runs", { prompt: "Help.", conversation_id: conversation }, { key: assignment.runToken })
    ).run_id;
    const client = { client_id: randomUUID() };
    const local = (await api.post("/agent/runs/local", { ...client, command: ["sleep", "60"], parent_run_id: child }))
      .run_id;
    expect(await listed(task, "include_current_run=true")).toMatchObject({ current_run: { run_id: runId } });
    expect(await cancelTask(task)).toMatchObject({ status: 200, body: { stage: "CANCELLED" } });
    expect(await Promise.all([runId, child, local].map(async (id) => (await runOf(api, id)).state))).toEqual([
      "CANCELLED",
      "CANCELLED",
      "CANCELLED",
    ]);
    expect(await api.post(`/agent/runs/${local}/report`, { ...client, events: [] })).toMatchObject({
      lease: "stopping",
    });
    await worker.complete(assignment, "CANCELLED");
  });

  test.each(["task", "run"])("of the %s does not overwrite a stage that is set afterwards", async (what) => {
    const task = await aTask();
    await (what === "task" ? cancelTask(task) : api.post(`/agent/runs/${runId}/cancel`));
    await api.patch(`${TASKS()}/${task.uid}`, { stage: "REVIEW" });
    const later = await aLaterTask();
    await eventually(async () => (await stageOf(later)) === "CANCELLED"); // Events are applied in order.
    expect(await stageOf(task)).toBe("REVIEW");
  });

  test("repeated with its key returns the first response, whatever happened to the task since", async () => {
    const task = await aTask();
    const ask = { headers: { "idempotency-key": randomUUID() } };
    const first = await cancelTask(task, ask);
    expect(first).toMatchObject({ status: 200, body: { stage: "CANCELLED" } });
    await api.patch(`${TASKS()}/${task.uid}`, { title: "Once more" });
    const again = await cancelTask(task, ask);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await api.get(`${TASKS()}/${task.uid}`)).toMatchObject({ title: "Once more", stage: "CANCELLED" });
  });

  test("of a run that is PENDING succeeds with the default retries of the published client", async () => {
    const client = new OzAPI({ apiKey: OWNER_KEY, baseURL: `${platform.url}/api/v1`, logLevel: "off" });
    await offerOf(runId);
    await client.agent.runs.cancel(runId);
    expect((await runOf(api, runId)).state).toBe("CANCELLED");
  });

  test("is rejected while the current run is being assigned", async () => {
    const task = await aTask();
    const lease = await offerOf(runId);
    expect(await cancelTask(task)).toMatchObject({ status: 409, body: { error_code: "conflict", retryable: true } });
    expect(await stageOf(task)).toBe("TRIAGE");
    await worker.decline(lease);
    expect(await cancelTask(task)).toMatchObject({ status: 200 });
  });

  test("acts on the team's newest run, also if a colleague has a newer personal run in the conversation", async () => {
    const task = await aTask();
    const colleague = await aColleague();
    await colleague.post("/agent/runs", { prompt: "Mine.", conversation_id: conversation, team: false });
    expect(await listed(task, "include_current_run=true")).toMatchObject({ current_run: { run_id: runId } });
    await worker.complete(await acceptNext(), "DONE");
    expect(await cancelTask(task)).toMatchObject({ status: 400, body: { reason: "run_already_finished" } });
  });

  test("of the run itself also cancels the task", async () => {
    const task = await aTask({ stage: "IMPLEMENT" });
    await api.post(`/agent/runs/${runId}/cancel`);
    await eventually(async () => (await stageOf(task)) !== "IMPLEMENT");
    expect(await stageOf(task)).toBe("CANCELLED");
  });

  test("of another team's or an unknown task returns 404", async () => {
    const task = await aTask();
    const stranger = await aTeam(api, "Others");
    const [theirs, random] = [
      await stranger.call("POST", `${TASKS()}/${task.uid}/cancel`),
      await stranger.call("POST", `/factory/${randomUUID()}/tasks/${randomUUID()}/cancel`),
    ];
    expect([theirs.status, random.status, theirs.body.detail]).toEqual([404, 404, random.body.detail]);
    expect(await cancelTask({ uid: randomUUID() })).toMatchObject({ status: 404 });
    expect(await stageOf(task)).toBe("TRIAGE");
  });

  /** Creates a task whose run is cancelled after all previous requests. */
  async function aLaterTask(): Promise<any> {
    const run = await startRun(api, "Later.");
    const task = await aTask({ conversation_id: (await runOf(api, run)).conversation_id });
    await api.post(`/agent/runs/${run}/cancel`);
    return task;
  }

  async function offerOf(run: string): Promise<Lease> {
    for (;;) {
      const lease = await worker.offer();
      if ((await runOf(api, run)).state === "PENDING") return lease;
      await worker.complete((await worker.accept(lease))!, "DONE");
    }
  }

  async function aColleague(): Promise<Client> {
    const team = await teamOf(api);
    const { api_key: first } = await api.post(`/team/${team}/members`, {
      email: `colleague-${randomUUID()}@example.com`,
      role: "member",
    });
    return api.as((await api.as(first).post(`/team/${team}/keys`, { name: "own" })).api_key);
  }
});

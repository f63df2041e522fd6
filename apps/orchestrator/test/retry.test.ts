import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { DEFAULT_QUEUE_SETTINGS } from "../src/catalog/domain/queue-settings.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, resolvedFor, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
/** The model to which the configuration of new runs resolves now. */
let model = "first";
let deleted: string | undefined;
beforeAll(async () => {
  platform = await testPlatform({
    resolveRun: async (_caller, request) => {
      const resolved = resolvedFor(request);
      return { ...resolved, frozen: { ...resolved.frozen, model_id: model } };
    },
    resolveQueueSettings: async (_caller, { agentUid }) => {
      if (agentUid !== undefined && agentUid === deleted) throw domainErrorOf("agent_not_found");
      return { team: DEFAULT_QUEUE_SETTINGS, agent: DEFAULT_QUEUE_SETTINGS, factory: DEFAULT_QUEUE_SETTINGS };
    },
  });
});
afterAll(() => platform.close());

const domainErrorOf = (reason: string) => Object.assign(new Error(reason), { reason });
const file = (text: string) => ({ fileName: "a.txt", mimeType: "text/plain", data: new TextEncoder().encode(text) });
const retry = (caller: ReturnType<typeof aCaller>, runUid: string, more = {}) =>
  platform.life.retryRun(caller, { runUid, ...more });

/** Creates a run that has failed. */
async function failed(request: Partial<NewRun> = {}, caller = aCaller()) {
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller, request);
  await (
    await startExecution(platform, worker)
  ).complete("FAILED", { error: { code: "invalid_request", message: "No.", retryable: false, reason: "" } });
  return { caller, worker, run };
}

test("a retry is a new run with the first run's frozen configuration, prompt, files, title, mode and metadata", async () => {
  model = "first";
  const { caller, worker, run } = await failed({
    prompt: "Do it well.",
    title: "Work",
    mode: "plan",
    metadata: { ticket: "T-1" },
    config: { base_prompt: "Be brief." },
    attachments: [file("one")],
  });
  model = "second";
  const { run: again, created } = await retry(caller, run.uid);
  expect([created, again.uid === run.uid, again.conversationUid === run.conversationUid]).toEqual([true, false, false]);
  expect(again).toMatchObject({
    retryOfRunUid: run.uid,
    state: "QUEUED",
    prompt: "Do it well.",
    title: "Work",
    mode: "plan",
    metadata: { ticket: "T-1" },
    agentConfig: run.agentConfig,
    rootRunUid: again.uid,
  });
  const { assignment } = await acceptExecution(platform, worker);
  expect([assignment.job.run.runUid, assignment.job.frozen.model_id]).toEqual([again.uid, "first"]);
  const [{ text, attachments }] = assignment.inputs as [(typeof assignment.inputs)[number]];
  const [copy] = attachments;
  expect([
    text,
    copy?.fileName,
    new TextDecoder().decode(platform.stored.get(copy!.downloadUrl.replace("https://blobs.example/", ""))),
  ]).toEqual(["Do it well.", "a.txt", "one"]);
});

test("follow-ups that were sent before the start are part of the retry", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller);
  await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "And quickly.",
    mode: "normal",
    attachmentUids: [],
  });
  await (await startExecution(platform, worker)).complete("DONE");
  expect((await retry(caller, run.uid)).run.prompt).toBe("Do it.\n\nAnd quickly.");
});

describe("retries with one key", () => {
  test("create one run, also concurrently", async () => {
    const { caller, run } = await failed();
    const answers = await Promise.all(Array.from({ length: 4 }, () => retry(caller, run.uid, { idempotencyKey: "k" })));
    expect(new Set(answers.map((answer) => answer.run.uid)).size).toBe(1);
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
  });
  test("are refused for another run, and without a key each creates a run", async () => {
    const { caller, run } = await failed();
    const { run: otherRun } = await failed({}, caller);
    await retry(caller, run.uid, { idempotencyKey: "k" });
    await expect(retry(caller, otherRun.uid, { idempotencyKey: "k" })).rejects.toEqual(
      domainError({ reason: "idempotency_mismatch" }),
    );
    expect((await retry(caller, run.uid)).run.uid).not.toBe((await retry(caller, run.uid)).run.uid);
  });
  test.each([{ idempotencyKey: "k" }, { causeKey: "call" }])(
    "with %j return the first run although its agent was deleted and the retried run is active again",
    async (keys) => {
      const agentUid = newUid();
      const { caller, run } = await failed({ agentUid });
      const first = await retry(caller, run.uid, keys);
      const message = { target: { runUid: run.uid }, message: "More.", mode: "normal", attachmentUids: [] } as const;
      await platform.life.createFollowup(caller, message);
      deleted = agentUid;
      expect(await retry(caller, run.uid, keys)).toMatchObject({ created: false, run: { uid: first.run.uid } });
      await expect(retry(caller, run.uid)).rejects.toEqual(domainError({ reason: "run_not_finished" }));
    },
  );
  test("of a tool call create one run permanently", async () => {
    const { caller, run } = await failed();
    const causeKey = `${newUid()}:call-1`;
    expect((await retry(caller, run.uid, { causeKey })).run.uid).toBe(
      (await retry(caller, run.uid, { causeKey })).run.uid,
    );
  });
});

test("a run that has not ended, or of another team, cannot be retried, and nothing changes", async () => {
  const caller = aCaller();
  const run = await platform.run(caller);
  await expect(retry(caller, run.uid)).rejects.toEqual(domainError({ kind: "conflict", reason: "run_not_finished" }));
  await expect(retry(aCaller(), run.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
  const { rows } = await platform.database.sql.query("SELECT 1 FROM runs WHERE retry_of_run_uid = $1", [run.uid]);
  expect(rows).toEqual([]);
});

test("a caller who may only read runs may not retry them", async () => {
  const { caller, run } = await failed();
  const viewer = aCaller({ ...caller, teams: [{ ...caller.teams[0]!, verbs: ["run.view"] }] });
  await expect(retry(viewer, run.uid)).rejects.toEqual(domainError({ kind: "permission_denied" }));
});

test("a run of a deleted agent cannot be retried; the retry of an existing agent's run acts as that agent", async () => {
  const agentUid = newUid();
  const { caller, run } = await failed({ agentUid });
  expect((await retry(caller, run.uid)).run).toMatchObject({ agentUid, executorUid: agentUid });
  deleted = agentUid;
  await expect(retry(caller, run.uid)).rejects.toMatchObject({ reason: "agent_not_found" });
});

test("the retry of another member's run acts as the member who retries it", async () => {
  const { caller, run } = await failed();
  const colleague = aCaller({ teams: caller.teams });
  const { run: again } = await retry(colleague, run.uid);
  expect([again.creatorUid, again.executorUid]).toEqual([colleague.principal.uid, colleague.principal.uid]);
});

test("a run that retries a failed child by its own token gets the new run as its child; runs outside its tree are not found", async () => {
  const { caller, worker, run: unrelated } = await failed();
  const parent = await platform.run(caller, aRun(caller));
  await startExecution(platform, worker);
  const child = await platform.run(caller, aRun(caller, { parentRunUid: parent.uid }));
  await (
    await startExecution(platform, worker)
  ).complete("FAILED", { error: { code: "invalid_request", message: "No.", retryable: false, reason: "" } });
  const agent = aCaller({
    ...caller,
    run: { runUid: parent.uid, rootRunUid: parent.uid, executionId: 1, attempt: 1 } as never,
  });
  expect((await retry(agent, child.uid)).run).toMatchObject({
    parentRunUid: parent.uid,
    rootRunUid: parent.uid,
    retryOfRunUid: child.uid,
  });
  await expect(retry(agent, unrelated.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
});

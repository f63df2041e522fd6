import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { actorOf } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import { domainError } from "@millwright/testing";
import { ActiveExecution, acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

/** Creates a team and a worker that serves only this team. */
async function team() {
  const caller = aCaller();
  return { caller, worker: await platform.worker({ teamUid: teamOf(caller) }) };
}

const fromStart = (lease: { executionId: number; attempt: number }) => ({
  ...lease,
  afterSeq: 0,
  wholeConversation: false,
  pageToken: "",
});

test("a run goes from the queue to its end, and every step can be read", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller, {
    prompt: "# Fix it\nplease",
    metadata: { ticket_id: "7", ticket_source: "linear" },
  });
  expect(run).toMatchObject({
    state: "QUEUED",
    title: "Fix it",
    depth: 0,
    rootRunUid: run.uid,
    submittedPrompt: "# Fix it\nplease",
  });
  const offers = await platform.claim(worker);
  expect((await platform.getRun(caller, run.uid)).state).toBe("PENDING");
  const { assignments } = await platform.life.worker.accept(worker.session, offers);
  expect(assignments[0]).toMatchObject({
    attempt: 1,
    executionSeq: 1,
    isRestarted: false,
    snapshotUrl: "",
    details: { secrets: { TOKEN: "s3cret" } },
  });
  expect(assignments[0]!.inputs).toMatchObject([{ kind: "prompt", text: "# Fix it\nplease", mode: "normal" }]);
  expect((await platform.getRun(caller, run.uid)).state).toBe("CLAIMED");
  const execution = new ActiveExecution(platform, worker.session, assignments[0]!);
  await execution.start();
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "INPROGRESS",
    isSandboxRunning: true,
    sessionUid: "session",
  });
  expect(await platform.inUse(teamOf(caller))).toBe(1);
  expect(await execution.complete("DONE")).toMatchObject({ error: "" });
  const ended = await platform.getRun(caller, run.uid);
  expect(ended).toMatchObject({ state: "SUCCEEDED", isSandboxRunning: false });
  expect(ended.finishedAt!.getTime()).toBeGreaterThanOrEqual(ended.startedAt!.getTime());
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  expect(await platform.kinds(run.uid)).toEqual([
    "run_created",
    "run_claimed",
    "sandbox_ready",
    "agent_started",
    "message",
    "run_finished",
  ]);
  const facts = await platform.facts(run.uid);
  expect(
    facts.map(({ type, payload }) => [type.slice(15, -3), payload["to"] ?? payload["state"]].filter(Boolean).join(" ")),
  ).toEqual([
    "created",
    "state_changed PENDING",
    "state_changed CLAIMED",
    "state_changed INPROGRESS",
    "state_changed SUCCEEDED",
    "finished SUCCEEDED",
  ]);
  expect(facts[0]!.payload).toMatchObject({
    ticket_id: "7",
    ticket_source: "linear",
    conversation_uid: run.conversationUid,
  });
  expect(facts.map((fact) => fact.entity_version)).toEqual([1, 2, 3, 4, 5, 5]);
});

test("several executions are accepted and completed in one call, each with its own result", async () => {
  const { caller, worker } = await team();
  const runs = [];
  for (const prompt of ["first", "second", "third", "fourth"]) runs.push(await platform.run(caller, { prompt }));
  const offers = await platform.claim(worker, 4);
  const foreign = { executionId: offers[0]!.executionId, attempt: 9 };
  const { assignments, lost } = await platform.life.worker.accept(worker.session, [...offers, foreign]);
  expect(assignments.map(({ inputs }) => inputs[0]!.text)).toEqual(["first", "second", "third", "fourth"]);
  expect(lost).toEqual([foreign]);
  expect(await platform.inUse(teamOf(caller))).toBe(4);
  const executions = await Promise.all(
    assignments.map((assignment) => new ActiveExecution(platform, worker.session, assignment).start()),
  );
  await platform.life.createFollowup(caller, {
    target: { runUid: runs[1]!.uid },
    message: "and this",
    mode: "normal",
    attachmentUids: [],
  });
  const completion = (n: number, more = {}) => ({
    ...executions[n]!.ref,
    outcome: "DONE" as const,
    lastClientSeq: executions[n]!.clientSeq,
    ...more,
  });
  const results = await platform.life.worker.complete(worker.session, [
    completion(0),
    completion(1),
    completion(2, { lastClientSeq: 99 }),
    completion(3, { outcome: "FAILED" }),
    { ...foreign, outcome: "DONE", lastClientSeq: 0 },
  ]);
  expect(results.map(({ error }) => error)).toEqual(["", "", "EVENTS_PENDING", "", "LEASE_LOST"]);
  const states = await Promise.all(runs.map(async ({ uid }) => (await platform.getRun(caller, uid)).state));
  expect(states).toEqual(["SUCCEEDED", "QUEUED", "INPROGRESS", "FAILED"]);
  expect(await platform.inUse(teamOf(caller))).toBe(1);
  for (const { uid } of runs) {
    const versions = (await platform.facts(uid)).map((fact) => fact.entity_version);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  }
});

test("an execution that cannot be set up ends its run with the reason, and is assigned to no worker", async () => {
  const failing = await testPlatform({
    prepareAssignment: async () => {
      throw new DomainError({ kind: "not_found", reason: "secret_not_found", message: "No such secret." });
    },
  });
  const caller = aCaller();
  const worker = await failing.worker();
  const run = await failing.run(caller);
  const { assignments, lost } = await failing.life.worker.accept(worker.session, await failing.claim(worker));
  expect([assignments.length, lost.length]).toEqual([0, 1]);
  expect(await failing.getRun(caller, run.uid)).toMatchObject({
    state: "FAILED",
    status: { message: "No such secret.", errorCode: "environment_setup_failed" },
  });
  expect(await failing.inUse(teamOf(caller))).toBe(0);
  await failing.close();
});

test("a declined offer is queued again with a higher attempt, and the old attempt is refused", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const offers = await platform.claim(worker);
  await platform.life.worker.decline(worker.session, offers);
  expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  expect((await platform.life.worker.accept(worker.session, offers)).lost).toHaveLength(1);
  const execution = await acceptExecution(platform, worker);
  expect(execution.assignment.attempt).toBe(2);
});

test("history omits what an attempt lost in its setup wrote, includes what one wrote whose agent had started, and includes the losses", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const lose = async ({ ref }: ActiveExecution) => {
    await platform.expire(ref.executionId);
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
  };
  const inSetup = await acceptExecution(platform, worker);
  await inSetup.append(inSetup.event("setup_command", { command: "x" }));
  await lose(inSetup);
  const atWork = await startExecution(platform, worker);
  await atWork.append(atWork.event("model_step", { step_id: "s" }));
  await lose(atWork);
  const execution = await acceptExecution(platform, worker);
  expect(execution.assignment).toMatchObject({ attempt: 3, isRestarted: true });
  const { events, hasMore } = await platform.life.worker.readHistory(worker.session, fromStart(execution.ref));
  expect(hasMore).toBe(false);
  expect(events.map(({ kind, attempt = 0 }) => `${kind} ${attempt}`)).toEqual([
    ...["run_created 0", "run_claimed 0", "worker_lost 0", "run_queued 0"],
    ...[
      "run_claimed 0",
      "sandbox_ready 2",
      "agent_started 2",
      "message 2",
      "model_step 2",
      "worker_lost 0",
      "run_queued 0",
      "run_claimed 0",
    ],
  ]);
  await expect(platform.life.worker.readHistory(worker.session, fromStart(atWork.ref))).rejects.toEqual(
    domainError({ reason: "lease_lost" }),
  );
  const seqs = (await platform.events(run.uid)).map(({ seq }) => seq);
  expect(seqs).toEqual(seqs.map((_, n) => n + 1));
});

test("history covers the earlier runs of a conversation that have the same owner, in pages, with complete long messages", async () => {
  const { caller, worker } = await team();
  const begun = await platform.run(caller);
  const first = await startExecution(platform, worker);
  await first.append(
    first.event("model_step", { step_id: "of the first run" }),
    first.event("warning", { text: "not of the conversation" }),
  );
  await first.complete("DONE");
  const foreign = await platform.run(caller, {
    conversationUid: begun.conversationUid,
    owner: { type: "user", uid: actorOf(caller).uid },
  });
  await platform.life.cancelRun(caller, { runUid: foreign.uid, tree: false });
  const long = "x".repeat(100_000);
  const next = await platform.run(caller, { conversationUid: begun.conversationUid, prompt: long });
  const execution = await acceptExecution(platform, worker);
  const { uid } = execution.assignment.inputs[0]!;
  await execution.append(
    execution.event("agent_started"),
    execution.event("message", { role: "user", text: "x", truncated: true, message_uid: uid }),
  );

  const history = [];
  for (let pageToken = "", hasMore = true; hasMore;) {
    const page = await platform.life.worker.readHistory(worker.session, {
      ...execution.ref,
      afterSeq: 0,
      wholeConversation: true,
      pageToken,
    });
    history.push(...page.events);
    ({ nextPageToken: pageToken, hasMore } = page);
  }
  expect(history.map(({ runUid, kind }) => [runUid, kind])).toEqual([
    ...["message", "model_step"].map((kind) => [begun.uid, kind]),
    ...["run_created", "run_claimed", "agent_started", "message"].map((kind) => [next.uid, kind]),
  ]);
  expect(history.at(-1)!.payload["text"]).toBe(long);
  const wrong = { ...execution.ref, afterSeq: 0, wholeConversation: true, pageToken: `${foreign.uid}/0` };
  await expect(platform.life.worker.readHistory(worker.session, wrong)).rejects.toEqual(
    domainError({ reason: "page_token_invalid" }),
  );
});

test("revoking a worker's key ends its session when the key is checked again", async () => {
  const { worker } = await team();
  platform.keys.delete(worker.key);
  expect((await platform.life.worker.authenticate(worker.token)).uid).toBe(worker.session.uid);
  await platform.database.sql.query("UPDATE worker_sessions SET key_checked_at = 'epoch' WHERE uid = $1", [
    worker.session.uid,
  ]);
  await expect(platform.life.worker.authenticate(worker.token)).rejects.toEqual(
    domainError({ reason: "session_invalid" }),
  );
});

test("text that cannot be stored is cleaned, not refused", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller, { prompt: "a\0b", title: "t\0" });
  expect(run).toMatchObject({ prompt: "a\uFFFDb", title: "t\uFFFD" });
  const execution = await startExecution(platform, worker);
  expect(execution.assignment.inputs[0]!.text).toBe("a\uFFFDb");
});

test("a queued run has a machine-readable reason", async () => {
  const caller = aCaller();
  const run = await platform.run(caller);
  expect(await platform.life.getQueueStatus(caller, run.uid)).toMatchObject({
    state: "QUEUED",
    reason: "no_workers",
    position: 1,
  });
  const codexWorker = await platform.worker({ teamUid: teamOf(caller), harness: "codex" });
  expect(await platform.life.getQueueStatus(caller, run.uid)).toMatchObject({ reason: "no_matching_worker" });
  expect(await platform.claim(codexWorker)).toHaveLength(0);
  const worker = await platform.worker({ teamUid: teamOf(caller), slots: 1 });
  expect(await platform.life.getQueueStatus(caller, run.uid)).toMatchObject({ reason: "none" });
  const second = await platform.run(caller);
  expect(await platform.life.getQueueStatus(caller, second.uid)).toMatchObject({
    reason: "behind_others",
    position: 2,
  });
  await startExecution(platform, worker);
  expect(await platform.life.getQueueStatus(caller, second.uid)).toMatchObject({ reason: "workers_busy", position: 1 });
  expect(aRun(caller).prompt).toBe("Do it.");
});

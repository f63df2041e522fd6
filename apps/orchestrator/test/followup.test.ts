import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Cursors } from "@millwright/paging";
import { domainError } from "@millwright/testing";
import type { MessageMode } from "../src/runs/domain/message.ts";
import { followupState } from "../src/runs/domain/followup.ts";
import { assignmentMessage } from "../src/leases/rpc/worker-messages.ts";
import { followupsOf } from "../src/runs/store/followup-store.ts";
import * as listing from "../src/conversations/usecases/list-followups.ts";
import { acceptExecution, startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function team() {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller, { prompt: "First." });
  const follow = (message: string) =>
    platform.life.createFollowup(caller, { target: { runUid: run.uid }, message, mode: "normal", attachmentUids: [] });
  const state = async () => (await platform.getRun(caller, run.uid)).state;
  return { caller, worker, run, follow, state };
}

const cursors = new Cursors(new Uint8Array(32));
function listFollowups(
  { database: { sql }, life }: TestPlatform,
  caller: ReturnType<typeof aCaller>,
  runUid: string,
  pageToken = "",
  pageSize = 0,
) {
  const reads = {
    getVisibleRun: (who: typeof caller, uid: string) => life.getRun(who, uid),
    followupsOf: (uid: string, after: number, limit: number) => followupsOf(sql, uid, after, limit),
  };
  return listing.listFollowups({ ...reads, cursors }, caller, { runUid, pageSize, pageToken });
}

const texts = (execution: ActiveExecution) => execution.assignment.inputs.map(({ text }) => text);

/** Reports that the worker passed a follow-up to the agent. */
const deliver = async (execution: ActiveExecution, uid: string) =>
  execution.append(execution.event("message", { role: "user", text: "…", message_uid: uid }));

test("before the start it becomes part of the prompt, also while the run is offered", async () => {
  const { caller, worker, run, follow } = await team();
  expect(await follow("Second.")).toEqual({ outcome: "queued_prompt", runUid: run.uid });
  const offers = await platform.claim(worker);
  expect(await follow("Third.")).toMatchObject({ outcome: "queued_prompt" });
  const { assignments } = await platform.life.worker.accept(worker.session, offers);
  expect(assignments[0]!.inputs.map(({ text }) => text)).toEqual(["First.", "Second.", "Third."]);
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    submittedPrompt: "First.\n\nSecond.\n\nThird.",
    prompt: "First.",
  });
});

test("during setup it is queued for the session, and delivered once", async () => {
  const { worker, follow } = await team();
  const execution = await acceptExecution(platform, worker);
  const { outcome, followupUid } = await follow("Second.");
  expect([outcome, typeof followupUid]).toEqual(["queue_pending", "string"]);
  const { directives } = await execution.heartbeat();
  expect(directives).toMatchObject([
    { kind: "followup", payload: { message_uid: followupUid, text: "Second.", mode: "normal" } },
  ]);
});

test("a live session receives it", async () => {
  const { worker, follow, state } = await team();
  const execution = await startExecution(platform, worker);
  const { outcome, followupUid } = await follow("Second.");
  expect(outcome).toBe("live_session");
  expect((await execution.heartbeat()).directives).toHaveLength(1);
  await deliver(execution, followupUid!);
  await execution.complete("DONE");
  expect(await state()).toBe("SUCCEEDED");
});

test("one that arrives while the run ends starts another execution instead of being lost", async () => {
  const { worker, run, follow, state } = await team();
  const execution = await startExecution(platform, worker);
  await follow("Second.");
  expect(await execution.complete("DONE")).toMatchObject({ error: "" });
  expect(await state()).toBe("QUEUED");
  const next = await startExecution(platform, worker);
  expect(next.assignment).toMatchObject({ executionSeq: 2, attempt: 1, isRestarted: false });
  expect(texts(next)).toEqual(["Second."]);
  await next.complete("DONE");
  expect(await state()).toBe("SUCCEEDED");
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "run_finished")).toHaveLength(1);
});

test.each(["DONE", "FAILED", "BLOCKED", "ERROR"] as const)(
  "a run that ended with %s continues in a new execution",
  async (outcome) => {
    const { caller, worker, run, follow, state } = await team();
    const execution = await startExecution(platform, worker);
    await platform.database.sql.query(
      "INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, 1, 9)",
      [`s-${run.uid}`, run.uid, execution.ref.executionId],
    );
    await execution.complete(outcome, { snapshotKey: `s-${run.uid}`, message: "Why?" });
    expect(await follow("Again.")).toMatchObject({ outcome: "handoff_execution" });
    expect(await platform.getRun(caller, run.uid)).not.toHaveProperty("finishedAt");
    expect(await state()).toBe("QUEUED");
    const next = await startExecution(platform, worker);
    expect(texts(next)).toEqual(["Again."]);
    expect(next.assignment).toMatchObject({ executionSeq: 2, snapshotUrl: `https://blobs.example/s-${run.uid}` });
    expect(next.assignment.job.run.conversationUid).toBe(run.conversationUid);
    await next.complete("DONE");
    expect(await state()).toBe("SUCCEEDED");
  },
);

describe("the mode of a follow-up", () => {
  async function planned() {
    const caller = aCaller();
    const worker = await platform.worker({ teamUid: teamOf(caller) });
    const run = await platform.run(caller, { prompt: "Plan it.", mode: "plan" });
    const request = { target: { runUid: run.uid }, message: "And this.", attachmentUids: [] };
    const follow = (mode: MessageMode) => platform.life.createFollowup(caller, { ...request, mode });
    return { caller, worker, run, follow };
  }
  const assigned = (execution: ActiveExecution) => assignmentMessage(execution.assignment, platform.timings, 0).mode;

  test.each([
    ["", "plan"],
    ["normal", "normal"],
  ] as const)("applies before the start; %j starts the run as %s", async (mode, expected) => {
    const { worker, follow } = await planned();
    await follow(mode);
    expect(assigned(await acceptExecution(platform, worker))).toBe(expected);
  });

  test("applies during the setup", async () => {
    const { worker, follow } = await planned();
    const execution = await acceptExecution(platform, worker);
    expect(await follow("normal")).toMatchObject({ outcome: "queue_pending" });
    expect((await execution.heartbeat()).directives).toMatchObject([{ payload: { mode: "normal" } }]);
  });

  test.each(["", "normal", "plan"] as const)("is ignored by a live session: %j", async (mode) => {
    const { worker, follow } = await planned();
    const execution = await startExecution(platform, worker);
    expect(await follow(mode)).toMatchObject({ outcome: "live_session" });
    expect((await execution.heartbeat()).directives).toMatchObject([{ payload: { mode: "" } }]);
  });

  test.each([
    ["awaiting_approval: the plan is ready.", "", "normal"],
    ["awaiting_approval: the plan is ready.", "plan", "plan"],
    ["Which name?", "", ""],
    ["Which name?", "normal", "normal"],
  ] as const)("applies to the execution that it starts: after %j, %j is %j", async (message, mode, expected) => {
    const { worker, follow } = await planned();
    await (await startExecution(platform, worker)).complete("BLOCKED", { message });
    expect(await follow(mode)).toMatchObject({ outcome: "handoff_execution" });
    expect((await acceptExecution(platform, worker)).assignment.inputs).toMatchObject([{ mode: expected }]);
  });

  test("of an automation approves no plan", async () => {
    const { caller, worker, run } = await planned();
    await (
      await startExecution(platform, worker)
    ).complete("BLOCKED", { message: "awaiting_approval: the plan is ready." });
    await platform.life.continueConversation(
      caller,
      aRun(caller, { prompt: "CI failed.", mode: "", conversationUid: run.conversationUid, causeKey: "ci" }),
    );
    expect((await acceptExecution(platform, worker)).assignment.inputs).toMatchObject([
      { text: "CI failed.", mode: "" },
    ]);
  });
});

test("a workspace is restored for runs of the same owner only", async () => {
  const { caller, worker, run } = await team();
  const personal = {
    owner: { type: "user", uid: caller.principal.uid },
    conversationUid: run.conversationUid,
  } as const;
  const saveWorkspace = async (execution: ActiveExecution) => {
    const { executionId } = execution.ref;
    await platform.database.sql.query(
      "INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, 1, 9)",
      [`s-${executionId}`, run.uid, executionId],
    );
    await execution.complete("DONE", { snapshotKey: `s-${executionId}` });
  };
  const first = await startExecution(platform, worker);
  await saveWorkspace(first);
  await platform.run(caller, personal);
  const own = await startExecution(platform, await platform.worker());
  expect(own.assignment.snapshotUrl).toBe("");
  await saveWorkspace(own);
  const next = await platform.run(caller, { conversationUid: run.conversationUid });
  const continued = await startExecution(platform, worker);
  expect(continued.assignment).toMatchObject({
    job: { run: { runUid: next.uid } },
    snapshotUrl: `https://blobs.example/s-${first.ref.executionId}`,
  });
});

test("a workspace of another attempt cannot be completed with", async () => {
  const { worker, run, follow } = await team();
  const execution = await startExecution(platform, worker);
  await execution.complete("DONE", { snapshotKey: "snapshots/somebody-else" });
  await follow("Again.");
  expect((await acceptExecution(platform, worker)).assignment.snapshotUrl).toBe("");
  expect(run.uid).toBeTruthy();
});

test("a cancelled run also continues, after its old execution has ended", async () => {
  const { caller, worker, run, follow, state } = await team();
  const execution = await startExecution(platform, worker);
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  expect(await follow("Go on.")).toMatchObject({ outcome: "handoff_execution" });
  expect(await platform.claim(worker)).toEqual([]);
  await execution.append(execution.event("sandbox_stopped", { reason: "cancelled" }));
  expect(await execution.complete("CANCELLED")).toMatchObject({ error: "" });
  expect(await state()).toBe("QUEUED");
  const next = await startExecution(platform, worker);
  expect(texts(next)).toEqual(["Go on."]);
});

test("a follow-up that a cancelled run had not received is reported undeliverable", async () => {
  const { caller, worker, run, follow } = await team();
  const execution = await startExecution(platform, worker);
  const { followupUid } = await follow("Too late.");
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  const fate = async () =>
    (await platform.events(run.uid)).find(({ kind }) => kind === "followup_undelivered")?.payload;
  expect(await fate()).toBeUndefined(); // its worker may still report that the agent has received it
  await execution.complete("CANCELLED");
  expect(await fate()).toEqual({ followup_uid: followupUid, reason: "run_cancelled" });
});

test("every follow-up has one delivery state, read in order and in pages: queued, delivered, or undeliverable with the reason", async () => {
  const { caller, worker, run, follow } = await team();
  const execution = await startExecution(platform, worker);
  const [seen, unseen] = [(await follow("Seen.")).followupUid!, (await follow("Unseen.")).followupUid!];
  await deliver(execution, seen);
  const fates = async (pageToken = "") => listFollowups(platform, caller, run.uid, pageToken);
  expect((await fates()).followups).toMatchObject([
    { uid: seen, text: "Seen.", deliveredAt: expect.any(Date) },
    { uid: unseen, text: "Unseen." },
  ]);
  expect((await fates()).followups.map(followupState)).toEqual(["delivered", "queued"]);
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  // Its worker may still report that the agent has received it.
  expect((await fates()).followups.map(followupState)).toEqual(["delivered", "queued"]);
  await execution.complete("CANCELLED");
  const first = await listFollowups(platform, caller, run.uid, "", 1);
  const second = await listFollowups(platform, caller, run.uid, first.nextPageToken, 1);
  expect(
    [...first.followups, ...second.followups].map((followup) => [
      followup.uid,
      followupState(followup),
      followup.undeliverable,
    ]),
  ).toEqual([
    [seen, "delivered", undefined],
    [unseen, "undeliverable", "run_cancelled"],
  ]);
  expect(second.nextPageToken).toBe("");
  await expect(fates("forged")).rejects.toEqual(domainError({ reason: "invalid_cursor" }));
  await expect(listFollowups(platform, aCaller(), run.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
});

describe("an interrupt", () => {
  const interrupt = (caller: ReturnType<typeof aCaller>, runUid: string) =>
    platform.life.interruptRun(caller, { runUid });

  test("of an active run is sent to its worker, in order with follow-ups, and leaves the run unchanged", async () => {
    const { caller, worker, run, follow, state } = await team();
    const execution = await startExecution(platform, worker);
    await follow("Before.");
    expect(await interrupt(caller, run.uid)).toBe(run.uid);
    await follow("After.");
    expect((await execution.heartbeat()).directives.map(({ kind }) => kind)).toEqual([
      "followup",
      "interrupt",
      "followup",
    ]);
    expect(await state()).toBe("INPROGRESS");
    expect(await platform.kinds(run.uid)).toContain("interrupt_requested");
  });

  test("is refused in other states, and changes nothing", async () => {
    const { caller, worker, run } = await team();
    const early = domainError({ kind: "conflict", reason: "run_not_started", retryable: true });
    await expect(interrupt(caller, run.uid)).rejects.toEqual(early);
    const execution = await acceptExecution(platform, worker);
    await expect(interrupt(caller, run.uid)).rejects.toEqual(early);
    await execution.complete("DONE");
    await expect(interrupt(caller, run.uid)).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "run_already_finished" }),
    );
    expect(await platform.kinds(run.uid)).not.toContain("interrupt_requested");
  });

  test("is supported by the built-in harness only", async () => {
    const { caller, worker, run } = await team();
    await startExecution(platform, worker);
    await platform.database.sql.query(
      'UPDATE runs SET agent_config = \'{"harness": {"type": "claude"}}\' WHERE uid = $1',
      [run.uid],
    );
    await expect(interrupt(caller, run.uid)).rejects.toEqual(
      domainError({ kind: "unsupported", reason: "operation_not_supported" }),
    );
  });

  test("of a conversation interrupts its newest run; that of another team is unknown", async () => {
    const { caller, worker, run } = await team();
    const execution = await startExecution(platform, worker);
    const { conversationUid } = run;
    expect(await platform.life.interruptRun(caller, { conversationUid })).toBe(run.uid);
    await expect(platform.life.interruptRun(aCaller(), { conversationUid })).rejects.toEqual(
      domainError({ reason: "conversation_not_found" }),
    );
    await expect(interrupt(aCaller(), run.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
    expect((await execution.heartbeat()).directives).toHaveLength(1);
  });
});

test("the messages of a lost attempt that its agent did not receive are sent to the next one, each once", async () => {
  const { worker, follow } = await team();
  const lost = await startExecution(platform, worker);
  const { followupUid } = await follow("Second.");
  await deliver(lost, followupUid!);
  await follow("Third.");
  await platform.expire(lost.ref.executionId);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  const execution = await startExecution(platform, worker);
  expect(texts(execution)).toEqual(["Third."]);
  expect((await execution.heartbeat()).directives).toEqual([]);
});

test("concurrent follow-ups have one delivery state each, whatever the run does", async () => {
  const { caller, worker, run, follow } = await team();
  const seen: string[] = [];
  const answers: Promise<{ followupUid?: string }>[] = [];
  for (let round = 0; round < 4; round++) {
    const execution = await acceptExecution(platform, worker);
    answers.push(follow(`a${round}`));
    await execution.start();
    seen.push(...texts(execution));
    answers.push(follow(`b${round}`), follow(`c${round}`));
    await Promise.all([execution.complete("DONE"), ...answers]);
    if ((await platform.getRun(caller, run.uid)).state !== "QUEUED") await follow(`wake${round}`);
  }
  const last = await startExecution(platform, worker);
  seen.push(...texts(last));
  await Promise.all(answers);
  expect(new Set(seen).size).toBe(seen.length);
  const { rows } = await platform.database.sql.query<{ text: string }>(
    "SELECT text FROM messages WHERE run_uid = $1 AND delivered_at IS NULL",
    [run.uid],
  );
  expect(rows).toEqual([]);
  const { rows: all } = await platform.database.sql.query<{ text: string }>(
    "SELECT text FROM messages WHERE run_uid = $1 ORDER BY seq",
    [run.uid],
  );
  expect(seen).toEqual(all.map(({ text }) => text));
});

test("an empty message and an unknown attachment are refused", async () => {
  const { caller, run, follow } = await team();
  await expect(follow(" \n")).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "message_empty" }));
  const withFile = {
    target: { runUid: run.uid },
    message: "See file.",
    mode: "normal" as const,
    attachmentUids: ["x"],
  };
  await expect(platform.life.createFollowup(caller, withFile)).rejects.toEqual(
    domainError({ kind: "unsupported", code: "unknown_attachment" }),
  );
  expect(await platform.kinds(run.uid)).toEqual(["run_created"]);
});

test("a conversation's follow-up goes to its newest run; a repeated key has one effect", async () => {
  const { caller, run } = await team();
  const newest = await platform.run(caller, { conversationUid: run.conversationUid });
  const request = {
    target: { conversationUid: run.conversationUid },
    message: "Hello.",
    mode: "normal" as const,
    attachmentUids: [],
    idempotencyKey: "once",
  };
  const first = await platform.life.createFollowup(caller, request);
  expect(first.runUid).toBe(newest.uid);
  expect(await platform.life.createFollowup(caller, request)).toEqual(first);
  expect((await platform.kinds(newest.uid)).filter((kind) => kind === "followup_accepted")).toHaveLength(1);
  await expect(platform.life.createFollowup(caller, { ...request, message: "Other." })).rejects.toEqual(
    domainError({ reason: "idempotency_mismatch" }),
  );
  await platform.run(caller, { conversationUid: run.conversationUid });
  expect(await platform.life.createFollowup(caller, request)).toEqual(first);
});

import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { REAPER_BATCH } from "../../src/leases/store/reaper-store.ts";
import { acceptExecution, startExecution } from "../support/fake-worker.ts";
import { aCaller, aRun, resolvedFor, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function team() {
  const caller = aCaller();
  return { caller, worker: await platform.worker({ teamUid: teamOf(caller) }) };
}

/** Lets the lease expire and runs the reaper. */
async function lose({ ref }: { ref: { executionId: number } }): Promise<void> {
  await platform.expire(ref.executionId);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
}

test("Worker frozen, then wakes: the old attempt is refused everywhere, and the next one continues without a gap", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const old = await startExecution(platform, worker);
  await lose(old);
  expect(await old.append(old.event("warning", { text: "late" }))).toMatchObject({ error: "LEASE_LOST" });
  expect(await old.complete("DONE")).toMatchObject({ error: "LEASE_LOST" });
  expect((await old.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
  await expect(platform.life.checkLease(old.ref)).rejects.toEqual(
    domainError({ kind: "unauthenticated", reason: "lease_lost" }),
  );
  expect(await platform.getRun(caller, run.uid)).toMatchObject({ state: "QUEUED", isSandboxRunning: false });
  expect(await platform.inUse(teamOf(caller))).toBe(0);

  const otherWorker = await platform.worker({ teamUid: teamOf(caller) });
  const next = await startExecution(platform, otherWorker);
  expect(next.assignment).toMatchObject({ attempt: 2, executionSeq: 1, isRestarted: true, inputs: [] });
  expect(await old.append(old.event("warning", { text: "later still" }))).toMatchObject({ error: "LEASE_LOST" });
  expect(await old.complete("FAILED")).toMatchObject({ error: "LEASE_LOST" });
  expect(await platform.life.checkLease(next.ref)).toMatchObject({ runUid: run.uid, owner: { uid: teamOf(caller) } });
  expect(await next.complete("DONE")).toMatchObject({ error: "" });
  const events = await platform.events(run.uid);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1));
  expect(events.filter(({ isSuperseded }) => isSuperseded)).toEqual([]);
  expect(events.filter(({ kind }) => kind === "run_queued").map(({ payload }) => payload["reason"])).toEqual([
    "resumed",
  ]);
});

test("messages that the agent of a lost attempt has received are not sent again; the others are sent to the next attempt", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const old = await startExecution(platform, worker);
  const { followupUid } = await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "More.",
    mode: "normal",
    attachmentUids: [],
  });
  await lose(old);
  const inSetup = await acceptExecution(platform, worker);
  const expectedInputs = [{ uid: followupUid, kind: "followup", text: "More.", mode: "", attachments: [] }];
  expect(inSetup.assignment.inputs).toEqual(expectedInputs);
  await lose(inSetup);
  const next = await acceptExecution(platform, worker);
  expect(next.assignment.inputs).toEqual(expectedInputs);
  expect((await platform.life.worker.accept(worker.session, [next.ref])).assignments[0]?.inputs).toEqual(
    expectedInputs,
  );
  await next.start();
  expect(await next.complete("DONE")).toMatchObject({ error: "" });
  expect((await platform.getRun(caller, run.uid)).state).toBe("SUCCEEDED");
});

test("files of messages that an agent has received are listed for every later sandbox of its conversation", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller, {
    attachments: [{ fileName: "a.txt", mimeType: "text/plain", data: new TextEncoder().encode("one") }],
  });
  const inSetup = await acceptExecution(platform, worker);
  expect([inSetup.assignment.inputs[0]!.attachments.length, inSetup.assignment.earlierAttachments]).toEqual([1, []]);
  await lose(inSetup);
  const lost = await startExecution(platform, worker);
  expect(lost.assignment.earlierAttachments).toEqual([]);
  await lose(lost);
  const next = await startExecution(platform, worker);
  const [file] = next.assignment.earlierAttachments;
  expect([next.assignment.inputs, file]).toMatchObject([
    [],
    { fileName: "a.txt", mimeType: "text/plain", sizeBytes: 3 },
  ]);
  expect(new TextDecoder().decode(platform.stored.get(file!.downloadUrl.replace("https://blobs.example/", "")))).toBe(
    "one",
  );
  await next.complete("DONE");
  await platform.run(caller, { conversationUid: run.conversationUid });
  expect((await acceptExecution(platform, worker)).assignment.earlierAttachments).toMatchObject([{ uid: file!.uid }]);
});

test("an interrupt that a lost worker had not acknowledged is sent to each next attempt until one acknowledges it", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const interrupt = () => platform.life.interruptRun(caller, { runUid: run.uid });
  const first = await startExecution(platform, worker);
  await interrupt();
  await first.heartbeat(1);
  await interrupt();
  await lose(first);
  const second = await acceptExecution(platform, worker);
  const left = [{ executionId: first.ref.executionId, attempt: 2, seq: 2, kind: "interrupt" }];
  expect(second.assignment.directives).toMatchObject(left);
  expect((await platform.life.worker.accept(worker.session, [second.ref])).assignments[0]?.directives).toMatchObject(
    left,
  );
  await lose(second);
  const third = await startExecution(platform, worker);
  expect(third.assignment.directives).toMatchObject([{ attempt: 3, seq: 2 }]);
  expect((await third.heartbeat()).directives).toMatchObject([{ attempt: 3, seq: 2, kind: "interrupt" }]);
  await third.heartbeat(2);
  await lose(third);
  expect((await acceptExecution(platform, worker)).assignment.directives).toEqual([]);
});

test("each directive names the previous one in its attempt, acknowledged or not, so that a worker detects gaps", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const interrupt = () => platform.life.interruptRun(caller, { runUid: run.uid });
  const follow = (message: string) =>
    platform.life.createFollowup(caller, { target: { runUid: run.uid }, message, mode: "normal", attachmentUids: [] });
  const chain = (directives: readonly { seq: number; previousSeq: number }[]) =>
    directives.map(({ seq, previousSeq }) => [seq, previousSeq]);
  const first = await startExecution(platform, worker);
  await follow("one");
  await interrupt();
  await follow("three");
  await interrupt();
  expect(chain((await first.heartbeat()).directives)).toEqual([
    [1, 0],
    [2, 1],
    [3, 2],
    [4, 3],
  ]);
  expect(chain((await first.heartbeat(1)).directives)).toEqual([
    [2, 1],
    [3, 2],
    [4, 3],
  ]);
  await lose(first);
  const second = await startExecution(platform, worker);
  expect(chain(second.assignment.directives)).toEqual([
    [2, 0],
    [4, 2],
  ]);
  await follow("five");
  expect(chain((await second.heartbeat(2)).directives)).toEqual([
    [4, 2],
    [5, 4],
  ]);
});

test("a run that must not be resumed fails when its worker is lost at work, and is retried when it is lost in setup", async () => {
  const careful = await testPlatform({
    resolveRun: async (_caller, request) => {
      const resolved = resolvedFor(request);
      return { ...resolved, frozen: { ...resolved.frozen, on_worker_loss: "fail" } };
    },
  });
  const caller = aCaller();
  const worker = await careful.worker({ teamUid: teamOf(caller) });
  const run = await careful.run(caller);
  const loseOne = async ({ ref }: { ref: { executionId: number } }) => {
    await careful.expire(ref.executionId);
    await careful.reaperIsAwake();
    await careful.life.reapOnce();
  };
  await loseOne(await acceptExecution(careful, worker));
  expect((await careful.getRun(caller, run.uid)).state).toBe("QUEUED");
  await loseOne(await startExecution(careful, worker));
  expect(await careful.getRun(caller, run.uid)).toMatchObject({
    state: "ERROR",
    status: { errorCode: "resource_unavailable", message: expect.stringContaining("does not allow it to resume") },
  });
  expect((await careful.events(run.uid)).at(-1)).toMatchObject({
    kind: "run_finished",
    payload: { reason: "worker_lost" },
  });
  await careful.close();
});

test("the next attempt starts from the newest checkpoint, and ignores older ones and those of other executions", async () => {
  const { caller, worker } = await team();
  const { sql } = platform.database;
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const saved = async (key: string, executionId = execution.ref.executionId) =>
    sql.query(
      "INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, 1, 9)",
      [key, run.uid, executionId],
    );
  for (const n of [1, 2]) {
    await saved(`${run.uid}-${n}`);
    await execution.append(execution.event("checkpoint", { snapshot_key: `${run.uid}-${n}` }));
  }
  await saved(`${run.uid}-foreign`, execution.ref.executionId + 1_000_000);
  await execution.append(
    execution.event("checkpoint", { snapshot_key: `${run.uid}-foreign` }),
    execution.event("checkpoint", { snapshot_key: "never given" }),
  );
  await lose(execution);
  const next = await startExecution(platform, worker);
  expect(next.assignment.snapshotUrl).toBe(`https://blobs.example/${run.uid}-2`);
  const snapshots = async () =>
    (
      await sql.query<{ key: string }>("SELECT snapshot_key AS key FROM snapshots WHERE execution_id = $1", [
        execution.ref.executionId,
      ])
    ).rows.map(({ key }) => key);
  expect(await snapshots()).toEqual([`${run.uid}-2`]);
  await saved(`${run.uid}-last`);
  await next.complete("DONE", { snapshotKey: `${run.uid}-last` });
  expect(await snapshots()).toEqual([`${run.uid}-last`]);
  await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "More.",
    mode: "normal",
    attachmentUids: [],
  });
  expect((await acceptExecution(platform, worker)).assignment.snapshotUrl).toBe(
    `https://blobs.example/${run.uid}-last`,
  );
});

test("a run that ends without a final snapshot is continued from its newest checkpoint", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await platform.database.sql.query(
    "INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, 1, 9)",
    [`${run.uid}-1`, run.uid, execution.ref.executionId],
  );
  await execution.append(execution.event("checkpoint", { snapshot_key: `${run.uid}-1` }));
  await execution.complete("ERROR", {
    error: { code: "agent_process_failed", message: "It died.", retryable: false, reason: "sandbox_died" },
  });
  await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "Again.",
    mode: "normal",
    attachmentUids: [],
  });
  expect((await acceptExecution(platform, worker)).assignment.snapshotUrl).toBe(`https://blobs.example/${run.uid}-1`);
});

test("Worker dies in SETUP: the run is queued again three times, a fourth loss ends it with a retryable error", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  for (let n = 1; n <= 4; n++) {
    expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
    await lose(await acceptExecution(platform, worker));
  }
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "ERROR",
    status: { errorCode: "resource_unavailable", retryable: true },
  });
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "worker_lost")).toHaveLength(4);
  expect(await platform.inUse(teamOf(caller))).toBe(0);
});

test("Worker dies while RUNNING: the run continues in another attempt twice, a third loss ends it", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  for (let n = 1; n <= 3; n++) await lose(await startExecution(platform, worker));
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "ERROR",
    status: { errorCode: "resource_unavailable" },
  });
});

test("Worker dies before Accept: the offer ends, the run is queued again any number of times, and no loss is counted", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  for (let n = 1; n <= 6; n++) {
    const [offer] = await platform.claim(worker);
    expect(offer!.attempt).toBe(n);
    await lose({ ref: offer! });
    expect((await platform.life.worker.accept(worker.session, [offer!])).lost).toHaveLength(1);
  }
  expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
});

test("Control plane restarts: no worker could renew, so the first tick extends every lease and reaps nothing", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await platform.expire(execution.ref.executionId);
  await platform.database.sql.query("UPDATE reaper_ticks SET last_tick = clock_timestamp() - $1 * interval '1 ms'", [
    platform.timings.reaperPauseMs + 1,
  ]);
  await platform.life.reapOnce();
  expect((await platform.getRun(caller, run.uid)).state).toBe("INPROGRESS");
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  await lose(execution);
  expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
});

test("Control plane was down for hours: no time limit ends a run; its attempt is lost 45 s later, continues, and is not charged for the outage", async () => {
  const { caller, worker } = await team();
  const [running, starting] = [await platform.run(caller), await platform.run(caller)];
  await startExecution(platform, worker);
  await acceptExecution(platform, worker);
  const { sql } = platform.database;
  const runs = [running.uid, starting.uid];
  await sql.query("UPDATE reaper_ticks SET last_tick = clock_timestamp() - interval '10 hours'");
  for (const [table, ...columns] of [
    ["executions", "claimed_at", "started_at"],
    ["run_streams", "last_worker_at"],
    ["leases", "expires_at"],
  ] as const)
    await sql.query(
      `UPDATE ${table} SET ${columns.map((column) => `${column} = ${column} - interval '10 hours'`).join(", ")} WHERE run_uid = ANY($1)`,
      [runs],
    );
  for (let n = 1; n <= 2; n++) {
    await platform.life.reapOnce();
    expect(await Promise.all(runs.map(async (uid) => (await platform.getRun(caller, uid)).state))).toEqual([
      "INPROGRESS",
      "CLAIMED",
    ]);
  }
  // 45 s later
  await sql.query("UPDATE leases SET expires_at = now(), extended_to = now() WHERE run_uid = ANY($1)", [runs]);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  for (const uid of runs) expect(await platform.getRun(caller, uid)).toMatchObject({ state: "QUEUED" });
  const { rows } = await sql.query<{ seconds: number }>(
    "SELECT extract(epoch FROM ended_at - started_at)::float8 AS seconds FROM compute_intervals WHERE run_uid = ANY($1)",
    [runs],
  );
  expect(rows.map(({ seconds }) => seconds < 3_600)).toEqual([true, true]);
  expect((await platform.getRun(caller, running.uid)).runTimeMs).toBeLessThan(3_600_000);
});

test("Network split or control-plane outage: a lease that is renewed in time is not reaped, and its run token expires with it", async () => {
  const { caller, worker } = await team();
  await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const { leases } = await execution.heartbeat();
  expect(leases).toMatchObject([{ status: "OK", runToken: `mwr_${execution.ref.executionId}.1` }]);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
});

test("Outage 30 s – 10 min: a lease that is renewed late, but before it is reaped, is valid again; a reaped one is LOST", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await platform.expire(execution.ref.executionId);
  // Until the lease is renewed, its run token is invalid.
  await expect(platform.life.checkLease(execution.ref)).rejects.toEqual(domainError({ reason: "lease_lost" }));
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  expect(await platform.life.checkLease(execution.ref)).toMatchObject({ runUid: run.uid });
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect((await platform.getRun(caller, run.uid)).state).toBe("INPROGRESS");
  await lose(execution);
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
});

test("two replicas that reap concurrently lose an attempt once", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await platform.expire(execution.ref.executionId);
  await platform.reaperIsAwake();
  await Promise.all([platform.life.reapOnce(), platform.life.reapOnce(), platform.life.reapOnce()]);
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "worker_lost")).toHaveLength(1);
});

test("another session cannot use a lease", async () => {
  const { caller, worker } = await team();
  await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const otherWorker = await platform.worker({ teamUid: teamOf(caller) });
  const { life } = platform;
  expect(
    await life.worker.append(otherWorker.session, [{ ...execution.ref, events: [execution.event("warning")] }]),
  ).toMatchObject([{ error: "LEASE_LOST" }]);
  expect(
    await life.worker.complete(otherWorker.session, [{ ...execution.ref, outcome: "DONE", lastClientSeq: 0 }]),
  ).toMatchObject([{ error: "LEASE_LOST" }]);
  const request = {
    state: "READY" as const,
    freeSlots: 0,
    leases: [{ ...execution.ref, phase: "RUNNING", ackedDirectiveSeq: 0 }],
  };
  expect((await life.worker.heartbeat(otherWorker.session, request)).leases).toMatchObject([{ status: "LOST" }]);
});

test("one round evaluates any number of overdue leases, and records ticks in between so that it is not mistaken for a pause", async () => {
  const own = await testPlatform();
  const caller = aCaller();
  const count = 2 * REAPER_BATCH + 1;
  await own.life.createRuns(
    caller,
    Array.from({ length: count }, () => aRun(caller)),
  );
  expect(await own.claim(await own.worker({ slots: count }), count)).toHaveLength(count);
  const { sql } = own.database;
  await sql.query("UPDATE leases SET expires_at = clock_timestamp()");
  await sql.query("CREATE TABLE ticks (at timestamptz)");
  await sql.query(
    "CREATE FUNCTION record_tick() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ticks VALUES (NEW.last_tick); RETURN NEW; END $$",
  );
  await sql.query(
    "CREATE TRIGGER record_tick AFTER UPDATE ON reaper_ticks FOR EACH ROW EXECUTE FUNCTION record_tick()",
  );
  await sql.query("UPDATE reaper_ticks SET last_tick = clock_timestamp()");
  await own.life.reapOnce();
  expect((await sql.query("SELECT 1 FROM runs WHERE state = 'QUEUED'")).rowCount).toBe(count);
  expect((await sql.query("SELECT 1 FROM ticks")).rowCount).toBeGreaterThanOrEqual(4);
  await own.close();
});

test("an agent that writes no events is warned about once, then stopped", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const silentFor = (ms: number) =>
    platform.database.sql.query(
      `WITH s AS (UPDATE run_streams SET last_worker_at = clock_timestamp() - $2 * interval '1 ms' WHERE run_uid = $1)
       UPDATE executions SET started_at = clock_timestamp() - $2 * interval '1 ms' WHERE run_uid = $1`,
      [run.uid, ms],
    );
  await platform.reaperIsAwake();
  await silentFor(platform.timings.stallWarningMs + 1000);
  await platform.life.reapOnce();
  await platform.life.reapOnce();
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "stalled")).toHaveLength(1);
  expect((await platform.getRun(caller, run.uid)).state).toBe("INPROGRESS");
  await silentFor(platform.timings.stallTimeoutMs + 1000);
  await platform.life.reapOnce();
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "ERROR",
    status: { errorCode: "infrastructure_timeout" },
  });
  const { leases, directives } = await execution.heartbeat();
  expect(leases).toMatchObject([{ status: "STOP" }]);
  expect(directives).toMatchObject([{ kind: "cancel", seq: 1 }]);
});

test("a setup that takes too long fails the run", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  await acceptExecution(platform, worker);
  await platform.database.sql.query("UPDATE executions SET claimed_at = 'epoch' WHERE run_uid = $1", [run.uid]);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "FAILED",
    status: { errorCode: "environment_setup_failed" },
  });
});

test("an execution that exceeds the time limit ends its run, and its worker is instructed to stop", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const since = (ms: number) =>
    platform.database.sql.query(
      "UPDATE executions SET claimed_at = clock_timestamp() - $2 * interval '1 ms' WHERE run_uid = $1",
      [run.uid, ms],
    );
  await platform.reaperIsAwake();
  await since(platform.timings.executionTimeoutMs - 60_000);
  await platform.life.reapOnce();
  expect((await platform.getRun(caller, run.uid)).state).toBe("INPROGRESS");
  await since(platform.timings.executionTimeoutMs + platform.timings.leaseTtlMs + 60_000);
  await platform.life.reapOnce();
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "ERROR",
    status: { errorCode: "infrastructure_timeout", retryable: false },
  });
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "STOP" }]);
});

test("a lease that cannot be evaluated does not block the others", async () => {
  const { caller, worker } = await team();
  const { sql } = platform.database;
  await platform.run(caller);
  const broken = await startExecution(platform, worker);
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  // A state that cannot occur.
  await sql.query("UPDATE executions SET state = 'ENDED', outcome = 'DONE' WHERE id = $1", [broken.ref.executionId]);
  for (const { ref } of [broken, execution]) await platform.expire(ref.executionId);
  await platform.reaperIsAwake();
  await expect(platform.life.reapOnce()).rejects.toThrow("does not fit");
  expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
  await sql.query("DELETE FROM leases WHERE execution_id = $1", [broken.ref.executionId]);
});

import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import type { LocalEvent } from "../src/runs/domain/local-run.ts";
import { acceptExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ limits: { team: 1 } });
});
afterAll(() => platform.close());

const at = new Date("2026-11-20T10:00:00Z");
const output = (seq: number, text: string): LocalEvent => ({ seq, at, kind: "output", stream: "stdout", text });
const end = (seq: number, more: object = {}): LocalEvent => ({
  seq,
  at,
  kind: "end",
  end: { exitCode: 0, isInterrupted: false, output: "", isTruncated: false, ...more },
});

async function started(caller = aCaller(), request = {}) {
  const clientUid = newUid();
  const local = { clientUid, command: ["npm", "test"] };
  const { run } = await platform.life.createLocalRun(caller, {
    ...aRun(caller, { prompt: "npm test", source: "LOCAL", ...request }),
    local,
  });
  const report = (...events: LocalEvent[]) =>
    platform.life.reportLocalRun(caller, { runUid: run.uid, clientUid, events });
  const now = () => platform.getRun(caller, run.uid);
  const followUp = (message: string) =>
    platform.life.createFollowup(caller, { target: { runUid: run.uid }, message, mode: "normal", attachmentUids: [] });
  const executionId = async () =>
    (
      await platform.database.sql.query<{ id: number }>(
        "SELECT id FROM executions WHERE run_uid = $1 ORDER BY seq DESC LIMIT 1",
        [run.uid],
      )
    ).rows[0]!.id;
  return { caller, clientUid, run, report, now, followUp, executionId };
}

test("a run that its client executes is INPROGRESS at once, uses no capacity, and no worker is offered it", async () => {
  const { caller, run, report } = await started();
  expect(run).toMatchObject({ state: "INPROGRESS", executionLocation: "LOCAL", source: "LOCAL" });
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  expect(await platform.claim(worker)).toEqual([]);
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  await platform.run(caller);
  await acceptExecution(platform, worker); // uses up the team's capacity of one
  expect((await report(end(1))).run.state).toBe("SUCCEEDED");
  expect(await platform.inUse(teamOf(caller))).toBe(1);
  expect(await platform.kinds(run.uid)).toEqual([
    "run_created",
    "run_claimed",
    "agent_started",
    "message",
    "model_step",
    "tool_start",
    "tool_end",
    "run_finished",
  ]);
});

test("stores reported events once, in order, however often they are sent; a gap adds nothing", async () => {
  const { run, report } = await started();
  expect((await report(output(1, "a"), output(2, "b"))).ackedSeq).toBe(2);
  expect((await report(output(1, "a"), output(2, "b"), output(3, "c"))).ackedSeq).toBe(3);
  expect((await report(output(5, "e"))).ackedSeq).toBe(3);
  const texts = (await platform.events(run.uid))
    .filter(({ kind }) => kind === "command_output")
    .map(({ payload }) => payload["text"]);
  expect(texts).toEqual(["a", "b", "c"]);
});

test.each<[string, object, string, string | undefined]>([
  ["succeeds", {}, "SUCCEEDED", undefined],
  ["fails", { exitCode: 3 }, "FAILED", "agent_process_failed"],
  ["is killed", { exitCode: undefined, signal: "SIGKILL" }, "FAILED", "agent_process_failed"],
  ["is stopped by its user", { exitCode: undefined, signal: "SIGINT", isInterrupted: true }, "CANCELLED", undefined],
])("a command that %s ends its run, and a repeated end changes nothing", async (_how, how, state, code) => {
  const { run, report, now } = await started();
  expect(await report(output(1, "x"), end(2, how))).toMatchObject({ lease: "over", ackedSeq: 2, run: { state } });
  expect([(await now()).status?.errorCode, await platform.inUse(run.owner.uid)]).toEqual([code, 0]);
  const before = await platform.events(run.uid);
  expect(await report(output(1, "x"), end(2, how))).toMatchObject({ lease: "over", run: { state } });
  expect(await platform.events(run.uid)).toEqual(before);
});

test("a client that dies leaves an ERROR that states so, nothing is resumed, and its late reports are refused", async () => {
  const { caller, run, report, now, executionId } = await started();
  await platform.expire(await executionId());
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect(await now()).toMatchObject({
    state: "ERROR",
    status: { errorCode: "agent_process_failed", retryable: false },
  });
  const before = await platform.events(run.uid);
  expect(before.at(-1)!.payload).toMatchObject({ state: "ERROR", reason: "client_lost" });
  expect(await report(output(1, "late"), end(2))).toMatchObject({
    lease: "over",
    ackedSeq: 0,
    followups: [],
    run: { state: "ERROR" },
  });
  expect([await platform.events(run.uid), await platform.inUse(teamOf(caller))]).toEqual([before, 0]);
});

test("a report renews the lease, so a silent command lives as long as its client does", async () => {
  const { report, now, executionId } = await started();
  await platform.expire(await executionId());
  expect((await report()).lease).toBe("held");
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect((await now()).state).toBe("INPROGRESS");
});

test("it cannot be cancelled, interrupted or retried from here", async () => {
  const { caller, run, report, now } = await started();
  await expect(platform.life.cancelRun(caller, { runUid: run.uid, tree: false })).rejects.toEqual(
    domainError({ kind: "unsupported", reason: "run_not_cancellable" }),
  );
  await expect(platform.life.interruptRun(caller, { runUid: run.uid })).rejects.toEqual(
    domainError({ kind: "unsupported", reason: "operation_not_supported" }),
  );
  expect((await now()).state).toBe("INPROGRESS");
  await report(end(1));
  await expect(platform.life.cancelRun(caller, { runUid: run.uid, tree: false })).rejects.toEqual(
    domainError({ reason: "run_already_finished" }),
  );
  await expect(platform.life.retryRun(caller, { runUid: run.uid })).rejects.toEqual(
    domainError({ reason: "operation_not_supported" }),
  );
});

describe("a follow-up", () => {
  test("is returned to the client until the client reports that the command received it", async () => {
    const { report, run, followUp } = await started();
    const { followupUid, outcome } = await followUp("And lint.");
    expect(outcome).toBe("live_session");
    for (const answer of [await report(), await report()])
      expect(answer.followups).toEqual([{ uid: followupUid, text: "And lint." }]);
    expect((await report({ seq: 1, at, kind: "followup", followupUid: followupUid! })).followups).toEqual([]);
    expect((await report(end(2))).run.state).toBe("SUCCEEDED");
    expect(
      (await platform.events(run.uid)).find(
        ({ kind, payload }) => kind === "message" && payload["message_uid"] === followupUid,
      )?.payload,
    ).toMatchObject({ text: "And lint." });
  });
  test("that the command did not receive, or that arrives after its end, is for a worker: the run is REMOTE from then on", async () => {
    for (const when of ["before", "after"] as const) {
      const { caller, run, report, followUp, now } = await started();
      if (when === "before") await followUp("And then?");
      await report(end(1));
      if (when === "after") await followUp("And then?");
      expect(await now()).toMatchObject({ state: "QUEUED", executionLocation: "REMOTE" });
      const execution = await acceptExecution(platform, await platform.worker({ teamUid: teamOf(caller) }));
      expect([
        execution.assignment.job.run.runUid,
        execution.assignment.executionSeq,
        execution.assignment.inputs.map(({ text }) => text),
      ]).toEqual([run.uid, 2, ["And then?"]]);
      expect(await platform.inUse(teamOf(caller))).toBe(1);
      expect((await platform.life.cancelRun(caller, { runUid: run.uid, tree: false })).state).toBe("CANCELLED");
    }
  });
  test("states that its files are not copied to where the command runs", async () => {
    const { report, followUp } = await started();
    const { followupUid } = await followUp("See the file.");
    await platform.database.sql.query(
      "INSERT INTO message_attachments (message_uid, seq, uid, file_name, mime_type, size_bytes, sha256) VALUES ($1, 1, $2, 'a', 'text/plain', 1, 'x')",
      [followupUid, newUid()],
    );
    expect((await report()).followups).toEqual([
      { uid: followupUid, text: "See the file.\n[1 attached: not brought to a command that its client executes]" },
    ]);
  });
  test("of another run is not returned to its client", async () => {
    const theirs = await started();
    const { followupUid } = await theirs.followUp("Secret.");
    const { run, report } = await started();
    await report({ seq: 1, at, kind: "followup", followupUid: followupUid! });
    expect(JSON.stringify(await platform.events(run.uid))).not.toContain("Secret.");
    expect((await theirs.report()).followups).toHaveLength(1);
  });
});

test("another client, team or viewer cannot report", async () => {
  const { caller, run, clientUid } = await started();
  const asked = { runUid: run.uid, clientUid, events: [output(1, "x")] };
  expect(await platform.life.reportLocalRun(caller, { ...asked, clientUid: newUid() })).toMatchObject({
    lease: "over",
    ackedSeq: 0,
  });
  await expect(platform.life.reportLocalRun(aCaller(), asked)).rejects.toEqual(
    domainError({ reason: "run_not_found" }),
  );
  const viewer = aCaller({ ...caller, teams: [{ ...caller.teams[0]!, verbs: ["run.view"] }] });
  await expect(platform.life.reportLocalRun(viewer, asked)).rejects.toEqual(domainError({ kind: "permission_denied" }));
  expect(await platform.kinds(run.uid)).not.toContain("command_output");
});

test("a repeated registration is the same run", async () => {
  const caller = aCaller();
  const clientUid = newUid();
  const register = () =>
    platform.life.createLocalRun(caller, {
      ...aRun(caller, { idempotencyKey: "k" }),
      local: { clientUid, command: ["true"] },
    });
  expect((await register()).run.uid).toBe((await register()).run.uid);
});

test("a waiting parent receives the end of a run that a client executes", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const parent = await platform.run(caller);
  const execution = await acceptExecution(platform, worker);
  await execution.start();
  const { report } = await started(caller, { parentRunUid: parent.uid });
  await execution.complete("WAITING", { waitFor: { policy: "all", runUids: [] } });
  expect((await platform.getRun(caller, parent.uid)).state).toBe("INPROGRESS");
  await report(end(1));
  expect((await platform.getRun(caller, parent.uid)).state).toBe("QUEUED");
});

test("a cancelled tree includes a run that a client executes; the client is informed by its next report", async () => {
  const caller = aCaller();
  const parent = await platform.run(caller);
  const { now, report } = await started(caller, { parentRunUid: parent.uid });
  await platform.life.cancelRun(caller, { runUid: parent.uid, tree: true });
  expect(await now()).toMatchObject({
    state: "CANCELLED",
    status: { message: "Cancelled with its parent run." },
  });
  expect((await report(output(1, "a"))).lease).toBe("stopping");
  expect(await report(end(2, { isInterrupted: true }))).toMatchObject({ lease: "over", run: { state: "CANCELLED" } });
});

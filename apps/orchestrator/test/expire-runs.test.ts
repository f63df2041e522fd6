import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "@millwright/caller";
import { manualClock, type ManualClock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import { aCaller, domainError } from "@millwright/testing";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";
import { deleteUnlinkedBlobs, runSweep } from "./support/sweeps.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let clock: ManualClock;
let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;

async function start(retention: { runEventDays?: number; artifactDays?: number }, harness = "oz"): Promise<void> {
  clock = manualClock(new Date());
  p = await catalogPlatform({ clock, ...retention });
  caller = aCaller();
  worker = await p.worker({ teamUid: teamOf(caller), harness });
}
afterEach(() => p.close());

const sweep = (): Promise<void> => runSweep(p);
const whenLinksHaveEnded = (): Promise<void> => deleteUnlinkedBlobs(p);
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const announced = (text: string) => ({
  sizeBytes: BigInt(text.length),
  sha256: createHash("sha256").update(text).digest("hex"),
});
const report = (execution: ActiveExecution, over: object) =>
  p.workers.createArtifact({ ...execution.lease, clientArtifactId: newUid(), ...over }, bearer(worker));
const follow = (runUid: string) =>
  p.life.createFollowup(caller, { target: { runUid }, message: "Continue.", mode: "normal", attachmentUids: [] });

/** Executes the next queued run, with one command, to its end. */
async function execute(): Promise<void> {
  const execution = await startExecution(p, worker);
  await execution.append(
    execution.event("tool_start", { call_id: "c", name: "run_command", category: "command", input: { command: "ls" } }),
    execution.event("tool_end", {
      ...{ call_id: "c", name: "run_command", category: "command", state: "completed" },
      output: { exit_code: 0, output: "secret-plan.txt", truncated: false },
    }),
  );
  await execution.complete("DONE");
}
/** Returns the number of events of a run that workers appended. */
const workerEvents = async (runUid: string): Promise<number> =>
  (await p.events(runUid)).filter(({ attempt }) => attempt !== undefined).length;
const transcript = async (runUid: string) =>
  p.follow("GET", (await p.conversations.getTranscriptUrl({ runUid }, p.as(caller))).url);
/** Returns the keys of all stored files. */
async function files(): Promise<string[]> {
  const keys: string[] = [];
  for (const folder of ["artifacts", "transcripts", "blocks"] as const)
    for await (const { key } of p.blobs.list(folder)) keys.push(key);
  return keys;
}

test("nothing expires by default", async () => {
  await start({});
  const run = await p.run(caller);
  const execution = await startExecution(p, worker);
  await report(execution, { artifactType: "FILE", data: { filepath: "a.txt" }, content: bytes("a") });
  await execution.complete("DONE");
  await p.work.drain();
  const stored = await files();
  clock.advance(10_000 * DAY_MS);
  await sweep();
  await whenLinksHaveEnded();
  expect([await workerEvents(run.uid), await files()]).toEqual([expect.any(Number), stored]);
  expect(await workerEvents(run.uid)).toBeGreaterThan(2);
});

describe("the events of ended runs", () => {
  beforeEach(() => start({ runEventDays: 7 }));

  test("are deleted after the retention time with transcripts and terminal output; the run stays", async () => {
    const run = await p.run(caller, { prompt: "List the files." });
    await execute();
    await p.work.drain();
    const before = await p.kinds(run.uid);
    expect(await transcript(run.uid)).toContain("secret-plan.txt");
    clock.advance(6 * DAY_MS);
    await sweep();
    expect(await p.kinds(run.uid)).toEqual(before);

    clock.advance(2 * DAY_MS);
    await sweep();
    expect(await workerEvents(run.uid)).toBe(0);
    expect((await p.runEvents.listRunEvents({ runUid: run.uid }, p.as(caller))).events.length).toBeGreaterThan(0);
    expect((await p.conversations.getConversation({ runUid: run.uid }, p.as(caller))).steps).toEqual([]);
    expect((await p.conversations.getTimeline({ runUid: run.uid }, p.as(caller))).events.length).toBeGreaterThan(0);
    await expect(transcript(run.uid)).rejects.toEqual(
      domainError({ kind: "not_found", reason: "transcript_not_found" }),
    );
    await expect(
      p.conversations.getBlockSnapshotUrl({ conversationUid: run.conversationUid }, p.as(caller)),
    ).rejects.toEqual(domainError({ kind: "not_found", reason: "block_snapshot_not_found" }));
    expect(await p.getRun(caller, run.uid)).toMatchObject({ state: "SUCCEEDED", prompt: "List the files." });
    expect(await files()).toHaveLength(2); // for an hour, until no link to them is valid
    await whenLinksHaveEnded();
    expect(await files()).toEqual([]);
  });

  test("are retained while a run of the conversation, or of the tree, has not ended for that long", async () => {
    const first = await p.run(caller);
    await execute();
    const parent = await p.run(caller);
    const waiting = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: parent.uid });
    await execute();
    clock.advance(8 * DAY_MS);
    await p.database.sql.query("UPDATE runs SET finished_at = finished_at + interval '5 days' WHERE uid = $1", [
      (await p.run(caller, { conversationUid: first.conversationUid })).uid,
    ]);
    await sweep();
    expect(await workerEvents(first.uid)).toBeGreaterThan(2); // its conversation has a queued run
    expect(await workerEvents(child.uid)).toBeGreaterThan(2); // its parent is active
    await execute();
    await waiting.complete("DONE");
    await p.database.sql.query(
      "UPDATE runs SET finished_at = finished_at + interval '5 days' WHERE conversation_uid = $1",
      [first.conversationUid],
    );
    await sweep();
    expect(await workerEvents(first.uid)).toBeGreaterThan(2); // it ended 3 days ago
    expect(await workerEvents(child.uid)).toBe(0);
    clock.advance(5 * DAY_MS);
    await sweep();
    expect(await workerEvents(first.uid)).toBe(0);
  });

  test("are retained while a workspace is stored from which a follow-up may continue", async () => {
    const run = await p.run(caller);
    const execution = await startExecution(p, worker);
    const { snapshotKey, uploadUrl } = await p.workers.putSnapshot(
      { ...execution.lease, ...announced("tar") },
      bearer(worker),
    );
    await p.follow("PUT", uploadUrl, bytes("tar"));
    await execution.complete("DONE", { snapshotKey });
    clock.advance(20 * DAY_MS);
    await sweep();
    expect(await workerEvents(run.uid)).toBeGreaterThan(0);
    clock.advance(11 * DAY_MS); // 31 days: the workspace has expired, too
    await sweep();
    await sweep();
    expect(await workerEvents(run.uid)).toBe(0);
  });

  test("do not hinder a follow-up, whose own events and transcript are stored", async () => {
    const run = await p.run(caller);
    await execute();
    clock.advance(8 * DAY_MS);
    await sweep();
    const [last] = (await p.events(run.uid)).slice(-1);
    await follow(run.uid);
    await execute();
    await p.work.drain();
    const seqs = (await p.events(run.uid)).map(({ seq }) => seq);
    expect(seqs.at(-1)).toBeGreaterThan(last!.seq);
    expect(new Set(seqs).size).toBe(seqs.length);
    await whenLinksHaveEnded();
    expect((await transcript(run.uid)).match(/secret-plan/g)).toHaveLength(1);
  });

  test("of many runs, and of runs with many events, are deleted in several transactions", async () => {
    const runs = [];
    for (let n = 0; n < 60; n++) runs.push(await p.run(caller));
    for (const _ of runs) await execute();
    await p.work.drain();
    await p.database.sql.query(
      `INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, attempt, payload)
       SELECT $1, 1000 + n, gen_random_uuid(), 'message', now(), 1, '{}' FROM generate_series(1, 12000) n`,
      [runs[0]!.uid],
    );
    clock.advance(8 * DAY_MS);
    await sweep();
    const { rows } = await p.database.sql.query(
      `SELECT (SELECT count(*)::int FROM stream.run_events WHERE attempt IS NOT NULL) AS events,
              (SELECT count(*)::int FROM transcripts) AS transcripts,
              (SELECT count(*)::int FROM block_snapshots) AS outputs,
              (SELECT count(*)::int FROM runs) AS runs`,
    );
    expect(rows).toEqual([{ events: 0, transcripts: 0, outputs: 0, runs: 60 }]);
  });
});

test("the transcript of a third-party harness expires with the run's events", async () => {
  await start({ runEventDays: 7 }, "claude");
  const run = await p.run(caller, { config: { harness: { type: "claude" } } });
  const execution = await startExecution(p, worker);
  const { uploadUrl } = await p.workers.putTranscript({ ...execution.lease, ...announced("native") }, bearer(worker));
  await p.follow("PUT", uploadUrl, bytes("native"));
  await execution.complete("DONE");
  await p.work.drain();
  expect(await transcript(run.uid)).toBe("native");
  clock.advance(8 * DAY_MS);
  await sweep();
  await expect(transcript(run.uid)).rejects.toEqual(domainError({ kind: "not_found", reason: "transcript_not_found" }));
  await whenLinksHaveEnded();
  expect(await files()).toEqual([]);
});

describe("artifacts of ended runs", () => {
  beforeEach(() => start({ artifactDays: 7 }));

  test("with content are deleted after their retention time; links to pull requests and references stay", async () => {
    const run = await p.run(caller);
    const execution = await startExecution(p, worker);
    const reports = [
      { artifactType: "FILE", data: { filepath: "a.txt" }, content: bytes("a") },
      { artifactType: "SCREENSHOT", data: { mime_type: "image/png" }, content: bytes("png") },
      { artifactType: "PLAN", data: { title: "Plan" }, content: bytes("# Plan") },
      {
        artifactType: "EXTERNAL_REFERENCE",
        data: { url: "https://tickets.test/1", title: "T", reference_type: "ticket" },
      },
    ];
    const uids: string[] = [];
    for (const over of reports) uids.push((await report(execution, over)).artifactUid);
    const types = async () => (await p.runs.listRuns({}, p.as(caller))).runs[0]!.artifacts.map((a) => a.artifactType);
    expect(await types()).toEqual(reports.map(({ artifactType }) => artifactType));
    clock.advance(8 * DAY_MS);
    await sweep();
    expect(await types()).toHaveLength(4); // the run is active
    await execution.complete("DONE");
    await p.database.sql.query("UPDATE runs SET finished_at = $1", [new Date(clock.now().getTime() - 6 * DAY_MS)]);
    await sweep();
    expect(await types()).toHaveLength(4);

    clock.advance(2 * DAY_MS);
    await sweep();
    expect(await types()).toEqual(["EXTERNAL_REFERENCE"]);
    for (const artifactUid of uids.slice(0, 3))
      await expect(p.artifacts.getArtifact({ artifactUid }, p.as(caller))).rejects.toEqual(
        domainError({ kind: "not_found", reason: "artifact_not_found" }),
      );
    expect(await workerEvents(run.uid)).toBeGreaterThan(0);
    await whenLinksHaveEnded();
    expect((await files()).filter((key) => key.startsWith("artifacts/"))).toEqual([]);
  });
});

import { createHash } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { manualClock, type ManualClock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { BLOB_FOLDERS } from "../src/storage/domain/blob-keys.ts";
import { artifactStore } from "../src/artifacts/store/artifact-store.ts";
import { requireLease } from "../src/leases/store/lease-store.ts";
import { appendRunEvents } from "../src/runs/store/run-events-store.ts";
import { commitArtifact } from "../src/artifacts/usecases/commit-artifact.ts";
import { createArtifact } from "../src/artifacts/usecases/create-artifact.ts";
import type { Transaction } from "../src/storage/store/transaction.ts";
import { nextSweep } from "../src/artifacts/usecases/sweep-blobs.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { deleteUnlinkedBlobs, runSweep } from "./support/sweeps.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let clock: ManualClock;
let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;

beforeEach(async () => {
  clock = manualClock(new Date());
  p = await catalogPlatform({ clock });
  caller = aCaller();
  worker = await p.worker();
});
afterEach(() => p.close());

const sweep = (): Promise<void> => runSweep(p);
const whenLinksHaveEnded = (): Promise<void> => deleteUnlinkedBlobs(p);
const follow = (runUid: string) =>
  p.life.createFollowup(caller, { target: { runUid }, message: "Go on.", mode: "normal", attachmentUids: [] });
const isThere = async (key: string): Promise<boolean> => {
  const blob = await p.blobs.get(key);
  blob?.body.destroy();
  return blob !== undefined;
};
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const announced = (text: string) => ({ sizeBytes: BigInt(text.length), sha256: sha256(text) });
const report = (execution: ActiveExecution, over: object) =>
  p.workers.createArtifact(
    { ...execution.lease, clientArtifactId: newUid(), artifactType: "FILE", data: { filepath: "a.txt" }, ...over },
    bearer(worker),
  );
const keyOf = async (artifactUid: string): Promise<string> =>
  (await p.database.sql.query<{ key: string }>("SELECT blob_key AS key FROM artifacts WHERE uid = $1", [artifactUid]))
    .rows[0]!.key;

describe("an announced upload that is not committed", () => {
  let execution: ActiveExecution;
  let artifactUid: string;
  let key: string;
  const commit = () => p.workers.commitArtifact({ ...execution.lease, artifactUid }, bearer(worker));
  beforeEach(async () => {
    await p.run(caller);
    execution = await startExecution(p, worker);
    const { uploadUrl, ...answer } = await report(execution, announced("late"));
    artifactUid = answer.artifactUid;
    key = await keyOf(artifactUid);
    await p.follow("PUT", uploadUrl, bytes("late"));
  });

  test("can be committed for a day", async () => {
    clock.advance(23 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    await commit();
    expect(await isThere(key)).toBe(true);
  });

  test("is deleted after a day, and its bytes an hour later", async () => {
    clock.advance(25 * HOUR_MS);
    await sweep();
    await expect(commit()).rejects.toEqual(domainError({ reason: "artifact_not_found" }));
    expect(await isThere(key)).toBe(true);
    await whenLinksHaveEnded();
    expect(await isThere(key)).toBe(false);
  });

  test("is retained if it is committed in time", async () => {
    await commit();
    clock.advance(100 * DAY_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect(await isThere(key)).toBe(true);
  });

  describe("swept during", () => {
    /** Returns transactions, the second of which starts only after `between`. */
    const interrupted = (between: () => Promise<unknown>): Transaction => {
      let turn = 0;
      return async (f) => {
        if (++turn === 2) await between();
        return p.database.transaction(f);
      };
    };
    const sweepNow = async () => {
      clock.advance(25 * HOUR_MS);
      await sweep();
    };
    const deps = () => ({
      ...{ transaction: interrupted(sweepNow), artifacts: artifactStore, blobs: p.blobs, appendRunEvents },
      requireLease: (tx: Sql, executionId: number, attempt: number) =>
        requireLease(tx, executionId, attempt, { sessionUid: worker.session.uid }),
    });

    test("its commit: the commit is refused", async () => {
      await expect(commitArtifact(deps(), execution.ref, artifactUid)).rejects.toEqual(
        domainError({ reason: "artifact_not_found" }),
      );
    });

    test("a repeated create: it returns a new artifact with a new blob key", async () => {
      const { rows } = await p.database.sql.query<{ id: string }>(
        "SELECT client_artifact_id AS id FROM artifacts WHERE uid = $1",
        [artifactUid],
      );
      const again = await createArtifact(deps(), {
        lease: execution.ref,
        clientArtifactId: rows[0]!.id,
        isPublic: false,
        report: { type: "FILE", data: { filepath: "a.txt" }, sizeBytes: 4, sha256: sha256("late") },
      });
      expect(again.artifactUid).not.toBe(artifactUid);
      await p.follow("PUT", again.upload!.url, bytes("late"));
      await whenLinksHaveEnded();
      await commitArtifact(
        { ...deps(), transaction: (f) => p.database.transaction(f) },
        execution.ref,
        again.artifactUid,
      );
      expect([await isThere(key), await isThere(await keyOf(again.artifactUid))]).toEqual([false, true]);
    });
  });
});

test("unreferenced files are deleted after a day, in every folder; referenced ones are retained", async () => {
  const [created] = await p.life.createRuns(caller, [
    {
      prompt: "Do it.",
      config: {},
      mode: "normal",
      owner: { type: "team", uid: caller.teams[0]!.teamUid },
      interactive: false,
      metadata: {},
      source: "API",
      attachments: [{ fileName: "a", mimeType: "text/plain", data: bytes("a") }],
    },
  ]);
  const runUid = created!.run.uid;
  const execution = await startExecution(p, worker);
  const { artifactUid } = await report(execution, { content: bytes("small") });
  const snapshot = await p.workers.putSnapshot({ ...execution.lease, ...announced("tar") }, bearer(worker));
  await p.follow("PUT", snapshot.uploadUrl, bytes("tar"));
  const transcript = await p.workers.putTranscript({ ...execution.lease, ...announced("lines") }, bearer(worker));
  await p.follow("PUT", transcript.uploadUrl, bytes("lines"));
  await execution.complete("DONE", { snapshotKey: snapshot.snapshotKey });
  await p.work.drain(); // writes the transcript
  const { attachments } = await p.life.prepareAttachments(caller, { runUid }, [
    { fileName: "a", mimeType: "text/plain" },
  ]);
  await p.follow("PUT", attachments[0]!.upload.url, bytes("new"));
  const { rows } = await p.database.sql.query<{ key: string }>(
    "SELECT 'attachments/' || uid AS key FROM message_attachments UNION ALL SELECT blob_key FROM transcripts UNION ALL SELECT blob_key FROM harness_transcripts UNION ALL SELECT blob_key FROM block_snapshots",
  );
  const named = [await keyOf(artifactUid), snapshot.snapshotKey, ...rows.map(({ key }) => key)];
  expect(new Set(named.map((key) => key.split("/")[0]))).toEqual(
    new Set(BLOB_FOLDERS.filter((folder) => folder !== "uploads")),
  ); // no row refers to an upload for longer than a day

  const orphans = [
    `artifacts/${runUid}/${newUid()}-x`,
    `artifacts/odd/x`,
    `attachments/${newUid()}`,
    `snapshots/${newUid()}/1-1-x`,
    `transcripts/${runUid}/9999.jsonl`,
    `blocks/${newUid()}/${newUid()}-1.json`,
    `uploads/${attachments[0]!.uid}`,
  ];
  for (const key of orphans.slice(0, -1)) await p.blobs.put(key, bytes("orphan"), { contentType: "text/plain" });
  const present = async (keys: string[]) => (await Promise.all(keys.map(isThere))).filter(Boolean).length;

  clock.advance(23 * HOUR_MS);
  await sweep();
  expect([await present(named), await present(orphans)]).toEqual([6, orphans.length]);
  clock.advance(2 * HOUR_MS);
  await sweep();
  expect([await present(named), await present(orphans)]).toEqual([6, 0]);
});

test("a transcript that was just replaced is retained for readers that have a link to it", async () => {
  const run = await p.run(caller);
  const execution = await startExecution(p, worker);
  await execution.complete("BLOCKED", { message: "Why?" });
  await p.work.drain();
  const newest = async () =>
    (
      await p.database.sql.query<{ key: string }>("SELECT blob_key AS key FROM transcripts WHERE run_uid = $1", [
        run.uid,
      ])
    ).rows[0]!.key;
  const old = await newest();
  clock.advance(25 * HOUR_MS);
  await follow(run.uid);
  await (await startExecution(p, worker)).complete("DONE");
  await sweep();
  expect([(await newest()) === old, await isThere(old)]).toEqual([false, true]);
  await whenLinksHaveEnded();
  expect([await isThere(old), await isThere(await newest())]).toEqual([false, true]);
});

describe("a workspace", () => {
  /**
   * Runs the next queued execution, which stores a workspace. Without `isNamed`, it ends without referring to the
   * snapshot.
   */
  async function storeWorkspace(content: string, { isNamed = true, isCheckpoint = false } = {}): Promise<string> {
    const execution = await startExecution(p, worker);
    const { snapshotKey, uploadUrl } = await p.workers.putSnapshot(
      { ...execution.lease, ...announced(content) },
      bearer(worker),
    );
    await p.follow("PUT", uploadUrl, bytes(content));
    if (isCheckpoint) await execution.append(execution.event("checkpoint", { snapshot_key: snapshotKey }));
    await execution.complete("DONE", isNamed ? { snapshotKey } : {});
    return snapshotKey;
  }
  /** Returns the snapshot URL with which the next execution begins. */
  const base = async (runUid: string) => {
    await follow(runUid);
    return (await startExecution(p, worker)).assignment.snapshotUrl;
  };

  test("that is not the result of an execution is deleted after a day", async () => {
    const run = await p.run(caller);
    const key = await storeWorkspace("unnamed", { isNamed: false });
    clock.advance(23 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect(await isThere(key)).toBe(true);
    clock.advance(2 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect([await isThere(key), await base(run.uid)]).toEqual([false, ""]);
  });

  test("that was the newest checkpoint of an execution which ended without another is retained", async () => {
    const run = await p.run(caller);
    const key = await storeWorkspace("checkpoint", { isNamed: false, isCheckpoint: true });
    clock.advance(25 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect(await isThere(key)).toBe(true);
    expect(await base(run.uid)).toContain(key);
  });

  test("is deleted when a newer one of its conversation is a day old; the newest is retained", async () => {
    const run = await p.run(caller);
    const first = await storeWorkspace("first");
    await follow(run.uid);
    const second = await storeWorkspace("second");
    clock.advance(25 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect([await isThere(first), await isThere(second)]).toEqual([false, true]);
    expect(await base(run.uid)).toContain(second);
  });

  test("is retained while a run of its conversation is active, which may start from it again", async () => {
    const run = await p.run(caller);
    const first = await storeWorkspace("first");
    await follow(run.uid);
    const execution = await startExecution(p, worker);
    expect(execution.assignment.snapshotUrl).toContain(first);
    clock.advance(100 * DAY_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect(await isThere(first)).toBe(true);
    await p.expire(execution.ref.executionId);
    await p.reaperIsAwake();
    await p.life.reapOnce();
    expect((await startExecution(p, worker)).assignment.snapshotUrl).toContain(first);
  });

  test("of another owner's run in the same conversation supersedes nothing", async () => {
    const run = await p.run(caller);
    const ours = await storeWorkspace("ours");
    await p.run(caller, { owner: { type: "user", uid: caller.principal.uid }, conversationUid: run.conversationUid });
    worker = await p.worker();
    const theirs = await storeWorkspace("theirs");
    clock.advance(25 * HOUR_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect([await isThere(ours), await isThere(theirs)]).toEqual([true, true]);
  });

  test("is retained for a follow-up for 30 days; then the follow-up starts with fresh clones", async () => {
    const run = await p.run(caller);
    const key = await storeWorkspace("kept");
    clock.advance(29 * DAY_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect(await isThere(key)).toBe(true);
    clock.advance(2 * DAY_MS);
    await sweep();
    await whenLinksHaveEnded();
    expect([await isThere(key), await base(run.uid)]).toEqual([false, ""]);
  });
});

test("drafts of a terminated process are deleted after a day", async () => {
  await p.blobs.put("artifacts/x/y", bytes("x"), { contentType: "text/plain" });
  await writeFile(join(p.dir, ".drafts", "half"), "half");
  clock.advance(23 * HOUR_MS);
  await sweep();
  expect(await readdir(join(p.dir, ".drafts"))).toEqual(["half"]);
  clock.advance(2 * HOUR_MS);
  await sweep();
  expect(await readdir(join(p.dir, ".drafts"))).toEqual([]);
});

test("every sweep schedules the next, once for all replicas, also when it fails", async () => {
  const planned = async () =>
    (
      await p.database.sql.query<{ at: Date; state: string }>(
        "SELECT due_at AS at, state FROM stream.work_items WHERE kind = 'sweep_blobs' ORDER BY due_at",
      )
    ).rows;
  await Promise.all([p.catalog.planSweep(), p.catalog.planSweep()]);
  const first = nextSweep(clock.now());
  expect(await planned()).toEqual([{ at: first, state: "waiting" }]);
  clock.set(first);
  await p.database.sql.query(
    "UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE kind = 'sweep_blobs'",
  );
  await p.database.sql.query("ALTER TABLE artifacts RENAME TO artifacts_away");
  await p.work.drain();
  await p.database.sql.query("ALTER TABLE artifacts_away RENAME TO artifacts");
  expect((await planned()).at(-1)).toEqual({ at: nextSweep(first), state: "waiting" });
});

import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { directiveMessage } from "../src/leases/rpc/worker-messages.ts";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

let p: CatalogPlatform;
beforeAll(async () => void (p = await catalogPlatform()));
afterAll(() => p.close());

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const NOTE = { fileName: "note.txt", mimeType: "text/plain" };
const unknownAttachment = (reason = "unknown_attachment") =>
  domainError({ kind: "unsupported", reason, code: "unknown_attachment" });

async function aTeam() {
  const caller = aCaller();
  const worker = await p.worker({ teamUid: teamOf(caller) });
  const run = await p.run(caller);
  return { caller, worker, run, ...actions(caller, run.uid) };
}

function actions(caller: Caller, runUid: string) {
  const prepare = async (...files: { fileName: string; mimeType: string }[]) =>
    (await p.life.prepareAttachments(caller, { runUid }, files)).attachments;
  /** Prepares and uploads a file. */
  const upload = async (content: string, file = NOTE) => {
    const [prepared] = await prepare(file);
    await p.follow("PUT", prepared!.upload.url, bytes(content));
    return { uid: prepared!.uid, url: prepared!.upload.url };
  };
  const follow = (attachmentUids: string[], over: object = {}) =>
    p.life.createFollowup(caller, { target: { runUid }, message: "See.", mode: "normal", attachmentUids, ...over });
  return { prepare, upload, follow };
}

describe("the files of a follow-up are delivered", () => {
  test("to a live session in the directive, with new links", async () => {
    const { worker, upload, follow } = await aTeam();
    const execution = await startExecution(p, worker);
    const [note, image] = [await upload("hello"), await upload("png", { fileName: "shot.png", mimeType: "image/png" })];
    const { followupUid } = await follow([image.uid, note.uid], { attachmentNames: { [note.uid]: "read me.txt" } });
    const [directive] = (await execution.heartbeat()).directives;
    expect(directiveMessage(directive!).directive.value).toMatchObject({
      message: {
        uid: followupUid,
        text: "See.",
        attachments: [
          { uid: image.uid, fileName: "shot.png", mimeType: "image/png" },
          { uid: note.uid, fileName: "read me.txt", mimeType: "text/plain" },
        ],
      },
    });
    expect(await Promise.all(directive!.files.map(({ downloadUrl }) => p.follow("GET", downloadUrl)))).toEqual([
      "png",
      "hello",
    ]);
  });

  test("to the next attempt if the worker was lost before it delivered the message", async () => {
    const { worker, upload, follow } = await aTeam();
    const execution = await startExecution(p, worker);
    const { uid } = await upload("hello");
    await follow([uid]);
    await p.expire(execution.ref.executionId);
    await p.reaperIsAwake();
    await p.life.reapOnce();
    const next = await acceptExecution(p, worker);
    expect(next.assignment.inputs.find(({ kind }) => kind === "followup")?.attachments).toMatchObject([
      { uid, fileName: "note.txt" },
    ]);
  });

  test.each(["before the start", "after the end"])("to the execution that starts, %s", async (when) => {
    const { worker, upload, follow } = await aTeam();
    if (when === "after the end") await (await startExecution(p, worker)).complete("DONE");
    const { uid } = await upload("hello");
    const { outcome } = await follow([uid]);
    const { assignment } = await acceptExecution(p, worker);
    expect(outcome).toBe(when === "after the end" ? "handoff_execution" : "queued_prompt");
    const [file] = assignment.inputs.at(-1)!.attachments;
    expect([file!.uid, await p.follow("GET", file!.downloadUrl)]).toEqual([uid, "hello"]);
  });

  test("without a message text", async () => {
    const { upload, follow } = await aTeam();
    const { uid } = await upload("hello");
    expect(await follow([uid], { message: "" })).toMatchObject({ outcome: "queued_prompt" });
    await expect(follow([], { message: " " })).rejects.toEqual(domainError({ reason: "message_empty" }));
  });
});

test("a later upload changes neither the files of an earlier follow-up nor those that the next follow-up takes of the same file", async () => {
  const { worker, upload, follow } = await aTeam();
  const execution = await startExecution(p, worker);
  const { uid, url } = await upload("first");
  await follow([uid]);
  await p.follow("PUT", url, bytes("other"));
  await follow([uid]);
  const { directives } = await execution.heartbeat();
  expect(
    await Promise.all(directives.flatMap(({ files }) => files.map(({ downloadUrl }) => p.follow("GET", downloadUrl)))),
  ).toEqual(["first", "first"]);
});

test("a file that is uploaded again between being recorded and being copied is delivered to no one", async () => {
  const { upload, follow, run } = await aTeam();
  const { uid, url } = await upload("first");
  await p.database.sql.query(
    "UPDATE prepared_attachments SET size_bytes = 5, sha256 = encode(sha256('first'), 'hex') WHERE uid = $1",
    [uid],
  ); // the process that recorded this content crashed before it copied the file
  await p.follow("PUT", url, bytes("other"));
  await expect(follow([uid])).rejects.toEqual(
    domainError({ kind: "conflict", reason: "attachment_changed", retryable: false }),
  );
  expect(await p.kinds(run.uid)).toEqual(["run_created"]);
  await p.follow("PUT", url, bytes("first"));
  expect(await follow([uid])).toMatchObject({ outcome: "queued_prompt" });
});

test("a repeated follow-up returns the first result although its conversation has a newer run without the file", async () => {
  const { caller, run, upload, follow } = await aTeam();
  const repeated = { target: { conversationUid: run.conversationUid }, idempotencyKey: "k" };
  const { uid } = await upload("hello");
  const first = await follow([uid], repeated);
  await p.run(caller, { conversationUid: run.conversationUid });
  expect(await follow([uid], repeated)).toEqual(first);
  await expect(follow([newUid()], repeated)).rejects.toEqual(domainError({ reason: "idempotency_mismatch" }));
});

describe("returns unknown_attachment and sends nothing if an id", () => {
  const refusalOf = async (run: Awaited<ReturnType<typeof aTeam>>, uids: string[]) => [
    await run.follow(uids).catch((error: unknown) => error),
    await p.kinds(run.run.uid),
  ];
  test.each([
    ["is unknown", newUid()],
    ["is malformed", "x"],
  ])("%s", async (_what, uid) =>
    expect(await refusalOf(await aTeam(), [uid])).toEqual([unknownAttachment(), ["run_created"]]),
  );
  test("is of another team, of another run, or of a run before the newest of the conversation", async () => {
    const [ours, theirs] = [await aTeam(), await aTeam()];
    expect(await refusalOf(ours, [(await ours.upload("ours")).uid, (await theirs.upload("theirs")).uid])).toEqual([
      unknownAttachment(),
      ["run_created"],
    ]);
    const { uid } = await ours.upload("old");
    const newer = await p.run(ours.caller, { conversationUid: ours.run.conversationUid });
    const target = { conversationUid: ours.run.conversationUid };
    await expect(ours.follow([uid], { target })).rejects.toEqual(unknownAttachment());
    expect((await p.life.prepareAttachments(ours.caller, target, [NOTE])).runUid).toBe(newer.uid);
  });
  test("was announced and not uploaded", async () => {
    const run = await aTeam();
    const [file] = await run.prepare(NOTE);
    expect(await refusalOf(run, [file!.uid])).toEqual([unknownAttachment("attachment_not_uploaded"), ["run_created"]]);
  });
  test("is a day old", async () => {
    const run = await aTeam();
    const { uid } = await run.upload("old");
    await p.database.sql.query(
      "UPDATE prepared_attachments SET created_at = created_at - interval '24 hours' WHERE uid = $1",
      [uid],
    );
    expect(await refusalOf(run, [uid])).toEqual([unknownAttachment(), ["run_created"]]);
  });
});

test("a file that is too large is refused by its link, and by the follow-up if the store accepted it", async () => {
  const { upload, prepare, follow } = await aTeam();
  const large = new Uint8Array(25_000_001);
  const [file] = await prepare(NOTE);
  await expect(p.follow("PUT", file!.upload.url, large)).rejects.toEqual(
    domainError({ kind: "too_large", reason: "blob_too_large" }),
  );
  const { uid } = await upload("small");
  await p.blobs.put(`uploads/${uid}`, large, { contentType: "text/plain" });
  await expect(follow([uid])).rejects.toEqual(domainError({ kind: "too_large", reason: "attachment_too_large" }));
});

test.each([
  ["no file", []],
  ["too many files", Array.from({ length: 26 }, () => NOTE)],
  ["a nameless file", [{ ...NOTE, fileName: " " }]],
  ["a name of too many bytes", [{ ...NOTE, fileName: "é".repeat(128) }]],
  ["a file without a type", [{ ...NOTE, mimeType: "" }]],
])("%s cannot be prepared", async (_what, files) => {
  const { prepare } = await aTeam();
  await expect(prepare(...files)).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "attachments_invalid" }),
  );
});

test("a follow-up names at most 25 files, each once", async () => {
  const { upload, follow } = await aTeam();
  const { uid } = await upload("x");
  for (const uids of [[uid, uid], Array.from({ length: 26 }, newUid)])
    await expect(follow(uids)).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "attachments_invalid" }),
    );
});

test("preparing a file requires a visible run and the permission to manage it", async () => {
  const { caller, run } = await aTeam();
  const viewer = { ...caller, teams: caller.teams.map((team) => ({ ...team, verbs: ["run.view" as const] })) };
  await expect(p.life.prepareAttachments(viewer, { runUid: run.uid }, [NOTE])).rejects.toEqual(
    domainError({ kind: "permission_denied" }),
  );
  await expect(p.life.prepareAttachments(aCaller(), { runUid: run.uid }, [NOTE])).rejects.toEqual(
    domainError({ reason: "run_not_found" }),
  );
  await expect(p.life.prepareAttachments(aCaller(), { conversationUid: run.conversationUid }, [NOTE])).rejects.toEqual(
    domainError({ reason: "conversation_not_found" }),
  );
});

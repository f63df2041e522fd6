import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { conversationsByUrl } from "../src/runs/store/conversation-run-store.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, resolvedFor, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
/** Runs once, before the configuration of the next new run is resolved. */
let beforeResolving: (() => Promise<void>) | undefined;
beforeAll(async () => {
  platform = await testPlatform({
    resolveRun: async (_caller, request) => {
      const happening = beforeResolving;
      beforeResolving = undefined;
      await happening?.();
      return resolvedFor(request);
    },
  });
});
afterAll(() => platform.close());

const FILE = { fileName: "event-payload.json", mimeType: "application/json", data: Buffer.from("{}") };

async function aConversation() {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller, { prompt: "First." });
  const continueFor = (causeKey: string, more: Partial<NewRun> = {}) =>
    platform.life.continueConversation(
      caller,
      aRun(caller, {
        prompt: `Because of ${causeKey}.`,
        conversationUid: run.conversationUid,
        causeKey,
        attachments: [FILE],
        ...more,
      }),
    );
  const runs = async () =>
    (
      await platform.database.sql.query<{ uid: string }>(
        "SELECT uid FROM runs WHERE conversation_uid = $1 ORDER BY created_at, uid",
        [run.conversationUid],
      )
    ).rows.map(({ uid }) => uid);
  const followups = async () =>
    (
      await platform.database.sql.query<{ text: string; files: number }>(
        "SELECT text, (SELECT count(*)::int FROM message_attachments a WHERE a.message_uid = m.uid) AS files FROM messages m JOIN runs r ON r.uid = m.run_uid WHERE r.conversation_uid = $1 AND kind = 'followup' ORDER BY m.seq",
        [run.conversationUid],
      )
    ).rows;
  return { caller, worker, run, continueFor, runs, followups };
}

test("sends a follow-up with the files, once per cause, to a run that is queued or active", async () => {
  const { worker, run, continueFor, runs, followups } = await aConversation();
  expect([await continueFor("a"), await continueFor("a")]).toEqual([run.uid, run.uid]);
  const execution = await startExecution(platform, worker);
  expect(execution.assignment.inputs.map(({ text, attachments }) => [text, attachments?.length])).toEqual([
    ["First.", 0],
    ["Because of a.", 1],
  ]);
  expect([await continueFor("b"), await continueFor("b"), await continueFor("a")]).toEqual([run.uid, run.uid, run.uid]);
  expect((await execution.heartbeat()).directives).toMatchObject([
    { kind: "followup", payload: { text: "Because of b.", attachments: [{ file_name: "event-payload.json" }] } },
  ]);
  expect([await runs(), await followups()]).toEqual([
    [run.uid],
    [
      { text: "Because of a.", files: 1 },
      { text: "Because of b.", files: 1 },
    ],
  ]);
});

test("returns the run that received the follow-up after it has ended, also after idempotency keys have expired", async () => {
  const { worker, run, continueFor, runs } = await aConversation();
  await continueFor("a");
  await (await startExecution(platform, worker)).complete("DONE");
  await platform.database.sql.query("DELETE FROM idempotency_keys");
  expect([await continueFor("a"), await runs()]).toEqual([run.uid, [run.uid]]);
});

test.each(["DONE", "FAILED", "ERROR"] as const)(
  "creates a new run after a run that ended with %s, once per cause",
  async (outcome) => {
    const { caller, worker, run, continueFor, runs, followups } = await aConversation();
    await (await startExecution(platform, worker)).complete(outcome, { message: "Over." });
    const next = await continueFor("a", { title: "Again", metadata: { automation_uid: "x" } });
    expect([next === run.uid, await continueFor("a"), await runs(), await followups()]).toEqual([
      false,
      next,
      [run.uid, next],
      [],
    ]);
    expect(await platform.getRun(caller, next)).toMatchObject({
      conversationUid: run.conversationUid,
      title: "Again",
      metadata: { automation_uid: "x" },
      state: "QUEUED",
    });
    expect((await startExecution(platform, worker)).assignment.inputs).toMatchObject([
      { text: "Because of a.", attachments: [{ fileName: "event-payload.json" }] },
    ]);
  },
);

test("sends a follow-up to a run that waits for an answer", async () => {
  const { caller, worker, run, continueFor } = await aConversation();
  await (await startExecution(platform, worker)).complete("BLOCKED", { message: "Which?" });
  expect([await continueFor("a"), (await platform.getRun(caller, run.uid)).state]).toEqual([run.uid, "QUEUED"]);
});

test("a cancelled run stays cancelled, and a new one is created after it", async () => {
  const { caller, worker, run, continueFor, runs } = await aConversation();
  const execution = await startExecution(platform, worker);
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  const next = await continueFor("a");
  await execution.complete("CANCELLED");
  expect([(await platform.getRun(caller, run.uid)).state, await runs()]).toEqual(["CANCELLED", [run.uid, next]]);
});

test("does not use a debug window", async () => {
  const { caller, worker, run, continueFor } = await aConversation();
  await acceptExecution(platform, worker);
  await platform.database.sql.query(
    "UPDATE executions SET state = 'DEBUG', debug_until = now() + interval '1 hour' WHERE run_uid = $1",
    [run.uid],
  );
  await platform.database.sql.query("UPDATE runs SET state = 'FAILED' WHERE uid = $1", [run.uid]);
  expect(await continueFor("a")).not.toBe(run.uid);
  expect((await platform.getRun(caller, run.uid)).state).toBe("FAILED");
});

test("of concurrent causes the first creates the run, and the others send it follow-ups", async () => {
  const { worker, run, continueFor, runs, followups } = await aConversation();
  await (await startExecution(platform, worker)).complete("DONE");
  const causes = Array.from({ length: 8 }, (_, n) => `cause ${n}`);
  const runUids = await Promise.all(
    causes.flatMap((cause) =>
      [continueFor(cause), continueFor(cause)].map((result) => result.catch(() => continueFor(cause))),
    ),
  );
  const [, next, ...more] = await runs();
  expect([new Set(runUids), more]).toEqual([new Set([next]), []]);
  expect((await followups()).length).toBe(causes.length - 1);
  expect(run.uid).not.toBe(next);
});

test("sends a follow-up to a run that a user resumes concurrently", async () => {
  const { caller, worker, run, continueFor, runs } = await aConversation();
  await (await startExecution(platform, worker)).complete("DONE");
  await Promise.all([
    platform.life.createFollowup(caller, {
      target: { runUid: run.uid },
      message: "Wake up.",
      mode: "normal",
      attachmentUids: [],
    }),
    continueFor("a"),
  ]);
  // Whichever call came first, the message is stored once: for the run that was woken, or by a new run created before.
  const { rows: messages } = await platform.database.sql.query(
    "SELECT 1 FROM messages WHERE run_uid = ANY($1::uuid[]) AND text = 'Because of a.'",
    [await runs()],
  );
  expect(messages).toHaveLength(1);
});

test("creates no second run if the run is resumed, receives the follow-up and ends while another call with the cause is about to create one", async () => {
  const { caller, worker, run, continueFor, runs, followups } = await aConversation();
  await (await startExecution(platform, worker)).complete("DONE");
  const runUids: string[] = [];
  beforeResolving = async () => {
    await platform.life.createFollowup(caller, {
      target: { runUid: run.uid },
      message: "Wake up.",
      mode: "normal",
      attachmentUids: [],
    });
    runUids.push(await continueFor("a"));
    await (await startExecution(platform, worker)).complete("DONE");
  };
  expect([await continueFor("a"), runUids, await runs()]).toEqual([run.uid, [run.uid], [run.uid]]);
  expect((await followups()).map(({ text }) => text)).toEqual(["Wake up.", "Because of a."]);
});

test("refuses conversations that are not the team's", async () => {
  const { run, continueFor } = await aConversation();
  const otherCaller = aCaller();
  await expect(
    platform.life.continueConversation(
      otherCaller,
      aRun(otherCaller, { prompt: "x", conversationUid: run.conversationUid, causeKey: "a" }),
    ),
  ).rejects.toEqual(domainError({ reason: "conversation_not_found" }));
  await expect(continueFor("a", { conversationUid: newUid() })).rejects.toEqual(
    domainError({ reason: "conversation_not_found" }),
  );
});

test("an ended child run in the conversation does not hide the active top-level run, which receives the follow-up", async () => {
  const { caller, worker, run, continueFor, runs, followups } = await aConversation();
  const root = await startExecution(platform, worker);
  const child = await platform.run(caller, { parentRunUid: run.uid, conversationUid: run.conversationUid });
  await (await startExecution(platform, worker)).complete("DONE");
  expect(await continueFor("a")).toBe(run.uid);
  expect((await root.heartbeat()).directives.map(({ kind }) => kind)).toContain("followup");
  expect([await runs(), await followups()]).toEqual([[run.uid, child.uid], [{ text: "Because of a.", files: 1 }]]);
});

test("a personal run in the team's conversation does not prevent the team from continuing it", async () => {
  const { caller, worker, run, continueFor } = await aConversation();
  const personal = await platform.run(caller, {
    owner: { type: "user", uid: caller.principal.uid },
    conversationUid: run.conversationUid,
  });
  expect(await continueFor("a")).toBe(run.uid);
  await (await startExecution(platform, worker)).complete("DONE");
  const next = await continueFor("b");
  expect([next === run.uid, next === personal.uid]).toEqual([false, false]);
});

test.each([
  ["as the code host writes it", (url: string) => url],
  ["with a slash at the end", (url: string) => `${url}/`],
  ["with host and path in capitals", (url: string) => url.replace("github.test/acme", "GitHub.Test/Acme")],
  ["with a query and a fragment", (url: string) => `${url}/?tab=all&x=/#issuecomment-1?`],
  ["with a fragment", (url: string) => `${url}#issuecomment-1`],
  ["between spaces", (url: string) => ` ${url} `],
])("finds a ticket by its address %s, and returns the address as it was written", async (_how, written) => {
  const caller = aCaller();
  const url = `https://github.test/acme/shop/issues/${newUid()}`;
  const run = await platform.run(caller, { metadata: { ticket_url: written(url) } });
  for (const otherUrl of [
    `${url}0`,
    `${url}/files`,
    url.replace("/issues/", "/pull/"),
    "https://github.test/acme/shop/issues",
  ])
    await platform.run(caller, { metadata: { ticket_url: otherUrl } });
  await platform.run(caller, { parentRunUid: run.uid, metadata: { ticket_url: url } });
  expect(await conversationsByUrl(platform.database.sql, teamOf(caller), url)).toEqual([run.conversationUid]);
  expect(run.metadata).toEqual({ ticket_url: written(url) });
});

test("finds conversations by the ticket of their root and by what a run of their tree reported", async () => {
  const { sql } = platform.database;
  const caller = aCaller();
  const url = `https://github.test/acme/shop/issues/${newUid()}`;
  const [byTicket, byReport, unrelated] = [
    await platform.run(caller, { metadata: { ticket_url: url } }),
    await platform.run(caller),
    await platform.run(caller, { metadata: { ticket_url: `${url}0` } }),
  ];
  // Two runs may be created in one millisecond.
  await sql.query("UPDATE runs SET created_at = created_at + interval '1 second' WHERE uid = $1", [byReport.uid]);
  const child = await platform.run(caller, { parentRunUid: byReport.uid });
  const report = (runUid: string, type: string, isThere = true) =>
    sql.query(
      "INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, public, committed_at) SELECT gen_random_uuid(), $1, gen_random_uuid()::text, x.id, $2, $3, false, CASE WHEN $4 THEN now() END FROM executions x WHERE x.run_uid = $1",
      [runUid, type, JSON.stringify({ url }), isThere],
    );
  await report(child.uid, "PULL_REQUEST");
  await report(unrelated.uid, "EXTERNAL_REFERENCE", false);
  const strangers = aCaller();
  await report((await platform.run(strangers)).uid, "EXTERNAL_REFERENCE");
  expect(await conversationsByUrl(sql, teamOf(caller), url)).toEqual([
    byReport.conversationUid,
    byTicket.conversationUid,
  ]);
  expect(await conversationsByUrl(sql, teamOf(strangers), url)).toHaveLength(1);
});

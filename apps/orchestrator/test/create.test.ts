import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError, missingTables } from "@millwright/testing";
import { EVENT_TABLES_SQL } from "@millwright/events";
import { WORK_TABLES_SQL } from "@millwright/work";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

const count = async (teamUid: string) =>
  (await platform.database.sql.query<{ n: number }>("SELECT count(*) AS n FROM runs WHERE owner_uid = $1", [teamUid]))
    .rows[0]!.n;

test("the migration contains the tables of the libraries", async () => {
  expect(await missingTables(platform.database.sql, EVENT_TABLES_SQL)).toEqual([]);
  expect(await missingTables(platform.database.sql, WORK_TABLES_SQL)).toEqual([]);
});

test.each([
  [undefined, undefined],
  [" ", undefined],
  [" Given ", "Given"],
])("the event of a run with the title %j never contains its prompt", async (title, publishedTitle) => {
  const caller = aCaller();
  const run = await platform.run(caller, {
    prompt: "Say nothing of the merger.",
    title,
  });
  const [created] = await platform.facts(run.uid);
  expect(created!.payload["title"]).toBe(publishedTitle);
  expect(JSON.stringify(created)).not.toContain("merger");
  expect(await platform.life.getRunTitles([run.uid, newUid(), "no uid"])).toEqual({
    [run.uid]: publishedTitle ?? "Say nothing of the merger.",
  });
});

describe("files", () => {
  const file = (fileName: string, text: string) => ({
    fileName,
    mimeType: "text/plain",
    data: new TextEncoder().encode(text),
  });
  const keys = () => new Set(platform.stored.keys());

  test("are delivered with the prompt, in order, to whichever attempt starts", async () => {
    const caller = aCaller();
    const worker = await platform.worker({ teamUid: teamOf(caller) });
    await platform.run(caller, { attachments: [file("b.txt", "two"), file("a.txt", "one")] });
    const first = await acceptExecution(platform, worker);
    await platform.expire(first.assignment.executionId);
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
    for (const { assignment } of [first, await acceptExecution(platform, worker)]) {
      const [{ text, attachments }] = assignment.inputs as [(typeof assignment.inputs)[number]];
      expect([text, attachments.map(({ fileName, mimeType, sizeBytes }) => [fileName, mimeType, sizeBytes])]).toEqual([
        "Do it.",
        [
          ["b.txt", "text/plain", 3],
          ["a.txt", "text/plain", 3],
        ],
      ]);
      const contents = attachments.map(({ downloadUrl }) =>
        new TextDecoder().decode(platform.stored.get(downloadUrl.replace("https://blobs.example/", ""))),
      );
      expect(contents).toEqual(["two", "one"]);
    }
  });

  test("reach an agent that has no prompt", async () => {
    const caller = aCaller();
    const worker = await platform.worker({ teamUid: teamOf(caller) });
    await platform.run(caller, { prompt: "", skill: "s", attachments: [file("a.txt", "one")] });
    expect((await acceptExecution(platform, worker)).assignment.inputs).toMatchObject([
      { text: "", attachments: [{ fileName: "a.txt" }] },
    ]);
  });

  test("are part of the idempotency comparison; those without a run are removed", async () => {
    const caller = aCaller();
    const create = (text: string) =>
      platform.life.createRuns(caller, [aRun(caller, { idempotencyKey: "k", attachments: [file("a.txt", text)] })]);
    const [first] = await create("one");
    const before = keys();
    expect((await create("one"))[0]!.run.uid).toBe(first!.run.uid);
    await expect(create("other")).rejects.toEqual(domainError({ reason: "idempotency_mismatch" }));
    expect(keys()).toEqual(before);
  });
});

describe("idempotency", () => {
  test("returns the first run for a repeated request, also concurrently", async () => {
    const caller = aCaller();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => platform.life.createRuns(caller, [aRun(caller, { idempotencyKey: "k" })])),
    );
    const uids = new Set(answers.map(([created]) => created!.run.uid));
    expect(uids.size).toBe(1);
    expect(answers.filter(([created]) => created!.created)).toHaveLength(1);
    expect(await count(teamOf(caller))).toBe(1);
  });

  test("refuses the same key with another body, and changes nothing", async () => {
    const caller = aCaller();
    await platform.run(caller, { idempotencyKey: "k" });
    await expect(platform.run(caller, { idempotencyKey: "k", prompt: "Other." })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch", retryable: false }),
    );
    expect(await count(teamOf(caller))).toBe(1);
  });

  test("keys belong to their principal, and expire after a day", async () => {
    const [first, second] = [aCaller(), aCaller()];
    const run = await platform.run(first, { idempotencyKey: "k" });
    expect((await platform.run(second, { idempotencyKey: "k" })).uid).not.toBe(run.uid);
    await platform.database.sql.query("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'");
    expect((await platform.run(first, { idempotencyKey: "k", prompt: "Other." })).uid).not.toBe(run.uid);
  });

  test("a cause creates one run of a team, permanently and for every caller", async () => {
    const caller = aCaller();
    const colleague = aCaller({ teams: caller.teams });
    const answers = await Promise.all(
      [caller, colleague, caller].map((who) => platform.life.createRuns(who, [aRun(caller, { causeKey: "slot-1" })])),
    );
    expect(new Set(answers.map(([created]) => created!.run.uid)).size).toBe(1);
    expect(await count(teamOf(caller))).toBe(1);
    expect((await platform.run(aCaller(), { causeKey: "slot-1" })).uid).not.toBe(answers[0]![0]!.run.uid);
  });

  test("runs that are created in one batch equal runs that are created one by one, and can be executed", async () => {
    const caller = aCaller();
    const asked = (causeKey: string) =>
      aRun(caller, {
        causeKey,
        title: "Nightly",
        source: "SCHEDULED_AGENT",
        metadata: { a: "b" },
        mode: "plan",
        triggerUrl: "https://x.test/s",
        schedule: { schedule_id: "s", schedule_name: "n", cron_schedule: "* * * * *" },
      });
    const bare = (causeKey: string) => aRun(caller, { causeKey, prompt: "Something else." });
    const [alone] = await platform.life.createRuns(caller, [asked("c-0")]);
    const [bareAlone] = await platform.life.createRuns(caller, [bare("b-0")]);
    const identical = await platform.life.createRuns(caller, [asked("c-1"), asked("c-2"), asked("c-3")]);
    const [newRun, bareRun, lastRun] = await platform.life.createRuns(caller, [
      asked("d-1"),
      bare("b-1"),
      asked("d-2"),
    ]);
    const batch = [...identical, newRun!, bareRun!, lastRun!];
    expect(batch.map(({ created }) => created)).toEqual(batch.map(() => true));
    const everything = async (uid: string) => {
      const found: Record<string, unknown>[] = [];
      for (const [table, key] of [
        ["runs", "uid"],
        ["executions", "run_uid"],
        ["run_streams", "run_uid"],
        ["messages", "run_uid"],
        ["stream.run_events", "run_uid"],
      ] as const) {
        const { rows } = await platform.database.sql.query<{ row: Record<string, unknown> }>(
          `SELECT to_jsonb(t) AS row FROM ${table} t WHERE ${key} = $1`,
          [uid],
        );
        found.push({
          table,
          rows: rows.map(({ row }) =>
            Object.fromEntries(
              Object.entries(row).filter(
                ([name]) => !/^id$|uid$|_at$|^cause_key$|traceparent/.test(name) || name === "owner_uid",
              ),
            ),
          ),
        });
      }
      const [event] = await platform.facts(uid);
      return { found, event: { type: event!.type, source: event!.payload["source"], title: event!.payload["title"] } };
    };
    const expected = await everything(alone!.run.uid);
    for (const { run } of [...identical, newRun!, lastRun!]) expect(await everything(run.uid)).toEqual(expected);
    expect(await everything(bareRun!.run.uid)).toEqual(await everything(bareAlone!.run.uid));
    const worker = await platform.worker({ teamUid: teamOf(caller) });
    for (let n = 0; n < 2 + batch.length; n += 1) await acceptExecution(platform, worker);
  });

  test("creates only the new runs of a batch that is requested again with some new causes", async () => {
    const caller = aCaller();
    const ask = (...keys: string[]) =>
      platform.life.createRuns(
        caller,
        keys.map((causeKey) => aRun(caller, { causeKey })),
      );
    const [first, second] = await ask("a", "b");
    const again = await ask("b", "c", "a");
    expect(again.map(({ created }) => created)).toEqual([false, true, false]);
    expect([again[0]!.run.uid, again[2]!.run.uid]).toEqual([second!.run.uid, first!.run.uid]);
    const racing = await Promise.all([ask("d", "e", "f"), ask("f", "e", "d"), ask("d", "e")]);
    expect(new Set(racing.flat().map(({ run }) => run.uid)).size).toBe(3);
    expect(await count(teamOf(caller))).toBe(6);
    await expect(
      platform.life.createRuns(caller, [aRun(caller, { causeKey: "g" }), aRun(caller, { causeKey: "h", prompt: " " })]),
    ).rejects.toEqual(domainError({ reason: "prompt_required" }));
    expect(await count(teamOf(caller))).toBe(6);
  });

  test("a run token creates a child once per call", async () => {
    const caller = aCaller();
    const worker = await platform.worker({ teamUid: teamOf(caller) });
    const parent = await platform.run(caller);
    const execution = await startExecution(platform, worker);
    const agent = aCaller({
      principal: { type: "agent", uid: newUid() },
      teams: caller.teams,
      run: { runUid: parent.uid, rootRunUid: parent.uid, executionId: String(execution.ref.executionId), attempt: 1 },
    });
    const request = { parentRunUid: parent.uid, idempotencyKey: "call-3" };
    const child = await platform.run(agent, request);
    expect((await platform.run(agent, request)).uid).toBe(child.uid);
  });

  test("creates several runs, or none of them", async () => {
    const caller = aCaller();
    const good = aRun(caller);
    await expect(platform.life.createRuns(caller, [good, aRun(caller, { parentRunUid: newUid() })])).rejects.toEqual(
      domainError({ reason: "parent_run_invalid" }),
    );
    await expect(platform.life.createRuns(caller, [good, aRun(caller, { conversationUid: newUid() })])).rejects.toEqual(
      domainError({ reason: "conversation_not_found" }),
    );
    expect(await count(teamOf(caller))).toBe(0);
  });
});

describe("parents and conversations", () => {
  test("a child belongs to its parent's tree and inherits its metadata", async () => {
    const caller = aCaller();
    const parent = await platform.run(caller, { metadata: { a: "1", b: "1" } });
    const child = await platform.run(caller, { parentRunUid: parent.uid, metadata: { b: "2" } });
    expect(child).toMatchObject({
      rootRunUid: parent.uid,
      parentRunUid: parent.uid,
      depth: 1,
      metadata: { a: "1", b: "2" },
    });
  });

  test("refuses children of a run that has ended", async () => {
    const caller = aCaller();
    const parent = await platform.run(caller);
    await platform.life.cancelRun(caller, { runUid: parent.uid, tree: false });
    await expect(platform.run(caller, { parentRunUid: parent.uid })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "parent_run_invalid" }),
    );
  });

  test("a tree has at most ten levels below its root", async () => {
    const caller = aCaller();
    let parent = await platform.run(caller);
    for (let depth = 1; depth <= 10; depth++) parent = await platform.run(caller, { parentRunUid: parent.uid });
    expect(parent.depth).toBe(10);
    await expect(platform.run(caller, { parentRunUid: parent.uid })).rejects.toEqual(
      domainError({ reason: "depth_exceeded" }),
    );
  });

  test("a conversation is created, or continued", async () => {
    const caller = aCaller();
    const first = await platform.run(caller);
    const second = await platform.run(caller, { conversationUid: first.conversationUid });
    expect(second.conversationUid).toBe(first.conversationUid);
    expect((await platform.run(caller)).conversationUid).not.toBe(first.conversationUid);
  });
});

describe("isolation of two teams", () => {
  test("what another team owns is reported as not found", async () => {
    const [ours, theirs] = [aCaller(), aCaller()];
    const foreign = await platform.run(theirs);
    const attempts = (uid: string) => [
      platform.life.getRun(ours, uid),
      platform.life.cancelRun(ours, { runUid: uid, tree: true }),
      platform.life.getQueueStatus(ours, uid),
      platform.life.createFollowup(ours, {
        target: { runUid: uid },
        message: "hi",
        mode: "normal",
        attachmentUids: [],
      }),
    ];
    const outcome = async (attempt: Promise<unknown>) =>
      attempt.then(
        () => "done",
        ({ kind, reason, message }) => ({ kind, reason, message }),
      );
    const seen = await Promise.all(attempts(foreign.uid).map(outcome));
    expect(seen).toEqual(await Promise.all(attempts(newUid()).map(outcome)));
    expect(seen).toEqual(await Promise.all(attempts("no-uuid").map(outcome)));
    expect(new Set(seen.map((error) => (error as { reason: string }).reason))).toEqual(new Set(["run_not_found"]));
    await expect(platform.run(ours, { parentRunUid: foreign.uid })).rejects.toEqual(
      domainError({ reason: "parent_run_invalid" }),
    );
    await expect(platform.run(ours, { conversationUid: foreign.conversationUid })).rejects.toEqual(
      domainError({ reason: "conversation_not_found" }),
    );
    await expect(platform.run(ours, { owner: { type: "team", uid: teamOf(theirs) } })).rejects.toEqual(
      domainError({ reason: "team_not_found" }),
    );
    expect(await platform.getRun(theirs, foreign.uid)).toEqual(foreign);
    const worker = await platform.worker({ teamUid: teamOf(ours) });
    expect(await platform.claim(worker, 9)).toEqual([]);
  });

  test("a personal run belongs to its owner alone", async () => {
    const owner = aCaller();
    const colleague = aCaller({ teams: owner.teams });
    const run = await platform.run(owner, { owner: { type: "user", uid: owner.principal.uid } });
    await expect(platform.life.getRun(colleague, run.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
    expect((await platform.life.getRun(owner, run.uid)).uid).toBe(run.uid);
    await expect(platform.run(colleague, { owner: { type: "user", uid: owner.principal.uid } })).rejects.toEqual(
      domainError({ kind: "not_found" }),
    );
  });

  test("a viewer reads the team's runs, and may neither create nor stop them", async () => {
    const owner = aCaller();
    const viewer = aCaller({ teams: [{ teamUid: teamOf(owner), verbs: ["run.view"] }] });
    const run = await platform.run(owner);
    expect((await platform.life.getRun(viewer, run.uid)).uid).toBe(run.uid);
    await expect(platform.run(viewer)).rejects.toEqual(domainError({ kind: "permission_denied" }));
    await expect(platform.life.cancelRun(viewer, { runUid: run.uid, tree: false })).rejects.toEqual(
      domainError({ kind: "permission_denied" }),
    );
    await expect(
      platform.life.createFollowup(viewer, {
        target: { runUid: run.uid },
        message: "x",
        mode: "normal",
        attachmentUids: [],
      }),
    ).rejects.toEqual(domainError({ kind: "permission_denied" }));
  });
});

test("concurrent creations share transactions, and a refused one does not fail the others", async () => {
  const caller = aCaller();
  const asked = Array.from({ length: 12 }, (_, n) =>
    platform.life.createRuns(caller, [aRun(caller, n === 5 ? { agentUid: "no uid" } : { prompt: `number ${n}` })]),
  );
  const settled = await Promise.allSettled(asked);
  expect(settled.map(({ status }, n) => (status === "fulfilled" ? "" : n)).filter((n) => n !== "")).toEqual([5]);
  const runs = settled.flatMap((result) => (result.status === "fulfilled" ? result.value.map(({ run }) => run) : []));
  expect(runs.map(({ prompt }) => prompt)).toEqual(
    Array.from({ length: 12 }, (_, n) => `number ${n}`).filter((_, n) => n !== 5),
  );
  for (const { uid } of runs) {
    expect((await platform.getRun(caller, uid)).state).toBe("QUEUED");
    expect((await platform.facts(uid)).map(({ type }) => type)).toEqual(["millwright.run.created.v1"]);
  }
});

import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

let p: CatalogPlatform;
beforeAll(async () => void (p = await catalogPlatform()));
afterAll(() => p.close());

async function aTeam(harness = "oz") {
  const caller = aCaller();
  const worker = await p.worker({ teamUid: teamOf(caller), harness });
  const run = await p.run(caller, { config: harness === "oz" ? {} : { harness: { type: harness } } });
  return { caller, worker, run, execution: await startExecution(p, worker) };
}
const command = (execution: ActiveExecution, id: string, text: string, output: string) =>
  execution.append(
    execution.event("tool_start", { call_id: id, name: "run_command", category: "command", input: { command: text } }),
    execution.event("tool_end", {
      call_id: id,
      name: "run_command",
      category: "command",
      state: "completed",
      output: { exit_code: 0, output, truncated: false },
    }),
  );
const viewerOf = (caller: Caller): Caller => ({
  ...caller,
  teams: caller.teams.map((team) => ({ ...team, verbs: ["run.view"] })),
});

describe("the block snapshot", () => {
  const linkTo = (caller: Caller, conversationUid: string) =>
    p.conversations.getBlockSnapshotUrl({ conversationUid }, p.as(caller));
  const read = async (caller: Caller, conversationUid: string) =>
    JSON.parse(await p.follow("GET", (await linkTo(caller, conversationUid)).url));
  const shown = async (caller: Caller, conversationUid: string) =>
    (await read(caller, conversationUid)).blocks.map((block: any) => [block.command, block.output]);
  const stored = async (conversationUid: string) =>
    (
      await p.database.sql.query<{ key: string }>(
        "SELECT blob_key AS key FROM block_snapshots WHERE conversation_uid = $1",
        [conversationUid],
      )
    ).rows.map(({ key }) => key);

  test("is written at the end of each execution, and contains all runs of the conversation", async () => {
    const { caller, worker, run, execution } = await aTeam();
    await command(execution, "c1", "ls", "\u001b[1ma\u001b[0m\n");
    expect(await stored(run.conversationUid)).toEqual([]);
    await execution.complete("DONE");
    await p.work.drain();
    const [first] = await stored(run.conversationUid);
    expect(await read(caller, run.conversationUid)).toMatchObject({
      version: 1,
      conversation_id: run.conversationUid,
      blocks: [{ id: "c1", run_id: run.uid, command: "ls", output: "a\n", exit_code: 0, state: "completed" }],
    });
    expect(await stored(run.conversationUid)).toEqual([first]);

    await p.run(caller, { conversationUid: run.conversationUid });
    const next = await startExecution(p, worker);
    await command(next, "c2", "pwd", "/workspace\n");
    await next.complete("DONE");
    await p.work.drain();
    expect(await stored(run.conversationUid)).not.toEqual([first]);
    expect(await shown(caller, run.conversationUid)).toEqual([
      ["ls", "a\n"],
      ["pwd", "/workspace\n"],
    ]);
  });

  test("of a run in progress contains the events up to now", async () => {
    const { caller, run, execution } = await aTeam();
    expect(await shown(caller, run.conversationUid)).toEqual([]);
    await command(execution, "c1", "ls", "a");
    expect(await shown(caller, run.conversationUid)).toEqual([["ls", "a"]]);
  });

  test("shows no one the commands of a run that they may not read", async () => {
    const { caller, run, execution } = await aTeam();
    await command(execution, "c1", "team", "t");
    await execution.complete("DONE");
    const personal = await p.run(caller, {
      owner: { type: "user", uid: caller.principal.uid },
      conversationUid: run.conversationUid,
    });
    const platformWorker = await p.worker();
    const mine = await startExecution(p, platformWorker);
    expect(mine.assignment.job.run.runUid).toBe(personal.uid);
    await command(mine, "c2", "personal", "p");
    await mine.complete("DONE");
    const colleague = { ...caller, principal: { ...caller.principal, uid: newUid() } } as Caller;
    expect([await shown(colleague, run.conversationUid), await shown(caller, run.conversationUid)]).toEqual([
      [["team", "t"]],
      [["personal", "p"]],
    ]);
  });

  test("does not exist before a worker claims the run, nor for other teams", async () => {
    const caller = aCaller();
    const run = await p.run(caller);
    await expect(linkTo(caller, run.conversationUid)).rejects.toEqual(
      domainError({ kind: "not_found", reason: "block_snapshot_not_found" }),
    );
    for (const uid of [run.conversationUid, newUid(), "x"])
      await expect(linkTo(aCaller(), uid)).rejects.toEqual(
        domainError({ kind: "not_found", reason: "conversation_not_found" }),
      );
  });
});

describe("the transcript of a conversation", () => {
  const linkTo = (caller: Caller, conversationUid: string) =>
    p.conversations.getTranscriptUrl({ conversationUid }, p.as(caller));
  test("is that of the newest run, if it uses a third-party harness", async () => {
    const { caller, run, execution } = await aTeam("claude");
    await execution.append(execution.event("model_step", { step_id: "s", text: "native", tool_calls: [] }));
    await execution.complete("DONE");
    expect(await p.follow("GET", (await linkTo(caller, run.conversationUid)).url)).toContain('"text":"native"');
  });
  test("is refused for the built-in harness, and is hidden from other teams", async () => {
    const { caller, run } = await aTeam();
    await expect(linkTo(caller, run.conversationUid)).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "no_raw_transcript" }),
    );
    await expect(linkTo(aCaller(), run.conversationUid)).rejects.toEqual(
      domainError({ reason: "conversation_not_found" }),
    );
  });
});

describe("a screenshot", () => {
  const report = async ({ execution, worker }: Awaited<ReturnType<typeof aTeam>>, type: "SCREENSHOT" | "FILE") =>
    (
      await p.workers.createArtifact(
        {
          executionId: BigInt(execution.ref.executionId),
          attempt: execution.ref.attempt,
          clientArtifactId: newUid(),
          artifactType: type,
          data: type === "FILE" ? { filepath: "a.png" } : { mime_type: "image/png" },
          content: new TextEncoder().encode("png"),
        },
        bearer(worker),
      )
    ).artifactUid;
  const linkTo = (caller: Caller, conversationUid: string, screenshotUid: string) =>
    p.artifacts.getScreenshotUrl({ conversationUid, screenshotUid }, p.as(caller));

  test("is linked to by its conversation", async () => {
    const team = await aTeam();
    const { url } = await linkTo(viewerOf(team.caller), team.run.conversationUid, await report(team, "SCREENSHOT"));
    expect(await p.follow("GET", url)).toBe("png");
  });
  test("is not found through another conversation, by other teams, or if the artifact is no screenshot", async () => {
    const [team, otherTeam] = [await aTeam(), await aTeam()];
    const [uid, theirs, file] = [
      await report(team, "SCREENSHOT"),
      await report(otherTeam, "SCREENSHOT"),
      await report(team, "FILE"),
    ];
    const another = await p.run(team.caller);
    const ours = team.run.conversationUid;
    for (const [caller, conversation, screenshot] of [
      [team.caller, another.conversationUid, uid],
      [team.caller, ours, theirs],
      [team.caller, ours, file],
      [team.caller, ours, newUid()],
      [team.caller, ours, "x"],
      [otherTeam.caller, ours, uid],
    ] as const) {
      await expect(linkTo(caller, conversation, screenshot)).rejects.toEqual(
        domainError({ kind: "not_found", reason: "screenshot_not_found" }),
      );
    }
  });
});

describe("files for continuing a run elsewhere", () => {
  const files = async (caller: Caller, runUid: string) =>
    (await p.conversations.listHandoffFiles({ runUid }, p.as(caller))).files;
  test("contain the workspace that its last execution saved", async () => {
    const { caller, worker, run, execution } = await aTeam();
    expect(await files(caller, run.uid)).toEqual([]);
    const snapshot = await p.workers.putSnapshot(
      {
        executionId: BigInt(execution.ref.executionId),
        attempt: execution.ref.attempt,
        sizeBytes: 3n,
        sha256: "3bfb1a8ae6dcb0ebc9a9c5b8e8d4a3b0ae9f7cbb8a3f9d1b8f3f9b0c2d1e4f5a",
      },
      bearer(worker),
    );
    await p.blobs.put(snapshot.snapshotKey, new TextEncoder().encode("tar"), { contentType: "application/x-tar" });
    await execution.complete("DONE", { snapshotKey: snapshot.snapshotKey });
    const [file, ...more] = await files(caller, run.uid);
    expect([file, more]).toMatchObject([
      { fileName: `workspace-${execution.ref.executionId}.tar`, mimeType: "application/x-tar" },
      [],
    ]);
    expect([await p.follow("GET", file!.downloadUrl), (await files(caller, run.uid))[0]!.uid]).toEqual([
      "tar",
      file!.uid,
    ]);
  });
  test("require the permission to manage the run", async () => {
    const { caller, run } = await aTeam();
    await expect(files(viewerOf(caller), run.uid)).rejects.toEqual(domainError({ kind: "permission_denied" }));
    await expect(files(aCaller(), run.uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
  });
});

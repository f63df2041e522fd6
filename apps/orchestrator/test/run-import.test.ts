import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { openRunImport, type ImportedRun } from "../src/run-import.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const caller = aCaller();
let platform: TestPlatform;
beforeAll(async () => void (platform = await testPlatform()));
afterAll(() => platform.close());

test("imported runs are ended runs of their team, with their tree", async () => {
  const [uid, child, later] = [newUid(), newUid(), newUid()];
  const root: ImportedRun = {
    uid,
    rootUid: uid,
    parentUid: undefined,
    conversationUid: uid,
    teamUid: teamOf(caller),
    factoryUid: newUid(),
    userUid: newUid(),
    agentUid: newUid(),
    agentName: "foreman",
    modelId: "claude-opus-5-5",
    source: "API",
    title: "Simulated",
    prompt: "p",
    state: "FAILED",
    createdAt: new Date("2026-11-01T10:00:00Z"),
    finishedAt: new Date("2026-11-01T10:02:00Z"),
  };
  const imported = openRunImport(platform.database.pool.options.connectionString!);
  await imported.storeRuns([
    { ...root, uid: child, parentUid: uid, source: "ORCHESTRATION", state: "SUCCEEDED" },
    root,
  ]);
  await imported.storeRuns([{ ...root, uid: later, rootUid: later }]); // in the lane that exists now
  await imported.close();
  expect(await platform.getRun(caller, uid)).toMatchObject({
    state: "FAILED",
    title: "Simulated",
    createdAt: root.createdAt,
    finishedAt: root.finishedAt,
  });
  expect(await platform.getRun(caller, child)).toMatchObject({
    state: "SUCCEEDED",
    parentRunUid: uid,
    rootRunUid: uid,
  });
  await expect(platform.getRun(aCaller(), uid)).rejects.toMatchObject({ reason: "run_not_found" });
});

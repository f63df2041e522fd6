import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { onAgentDeleted } from "../src/runs/events/on-agent-deleted.ts";
import { acceptExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => void (platform = await testPlatform()));
afterAll(() => platform.close());

test("the deletion of an agent enqueues one cleanup now and one for runs that are being created, on behalf of the caller that deleted it", async () => {
  const [agentUid, teamUid, user] = [newUid(), newUid(), newUid()];
  const event = {
    entityUid: agentUid,
    teamUid,
    actor: { type: "user", uid: user },
    occurredAt: new Date("2026-11-20T10:00:00Z"),
  };
  for (let n = 0; n < 2; n++) await platform.database.transaction((tx) => onAgentDeleted(tx, event as never));
  const { rows } = await platform.database.sql.query(
    "SELECT payload, due_at FROM stream.work_items WHERE key LIKE $1 ORDER BY key DESC",
    [`${agentUid}%`],
  );
  const payload = { agent_uid: agentUid, team_uid: teamUid, actor: { type: "user", uid: user } };
  expect(rows).toEqual([
    { payload, due_at: new Date("2026-11-20T10:02:00Z") },
    { payload, due_at: expect.any(Date) },
  ]);
});

test("cancels the active runs of a deleted agent; runs of others and ended runs are unchanged", async () => {
  const caller = aCaller();
  const [agent, otherAgent, teamUid] = [newUid(), newUid(), teamOf(caller)];
  const worker = await platform.worker({ teamUid });
  const working = await platform.run(caller, { agentUid: agent });
  await acceptExecution(platform, worker);
  const done = await platform.run(caller, { agentUid: agent });
  await (await acceptExecution(platform, worker)).complete("DONE");
  const queued = await platform.run(caller, { agentUid: agent });
  const others = await platform.run(caller, { agentUid: otherAgent });
  const deleted = { agent_uid: agent, team_uid: teamUid, actor: { type: "user", uid: caller.principal.uid } };
  for (let n = 0; n < 2; n++) await platform.life.cancelRunsOfAgent(deleted);
  const states = await Promise.all(
    [working, done, queued, others].map(async ({ uid }) => (await platform.getRun(caller, uid)).state),
  );
  expect(states).toEqual(["CANCELLED", "SUCCEEDED", "CANCELLED", "QUEUED"]);
});

test("retries a run that is being offered to a worker", async () => {
  const caller = aCaller();
  const [agent, teamUid] = [newUid(), teamOf(caller)];
  const worker = await platform.worker({ teamUid });
  const { uid } = await platform.run(caller, { agentUid: agent });
  const [offer] = await platform.claim(worker);
  const deleted = { agent_uid: agent, team_uid: teamUid, actor: { type: "user", uid: caller.principal.uid } };
  await expect(platform.life.cancelRunsOfAgent(deleted)).rejects.toEqual(
    domainError({ reason: "run_pending", retryable: true }),
  );
  await platform.life.worker.decline(worker.session, [offer!]);
  await platform.life.cancelRunsOfAgent(deleted);
  expect((await platform.getRun(caller, uid)).state).toBe("CANCELLED");
});

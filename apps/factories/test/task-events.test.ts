import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, eventually } from "@millwright/testing";
import { MEMBER, OTHER_TEAM, OWNER, startWorld, TEAM, VIEWER, type World } from "./setup.ts";
import type { FakeRun } from "./fake-orchestrator.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  factoryUid = (await w.aFactory()).uid;
  w.orchestrator.pageSize = 200;
});
afterAll(() => w.stop());

const dispatched = (title = "Work", more: Partial<FakeRun> = {}) =>
  w.orchestrator.created({ origin: "dispatch", teamUid: TEAM, factoryUid, title, ...more });
const taskOf = async (run: FakeRun) => (await w.tasks.getTaskByRun({ factoryUid, runUid: run.uid }, call(VIEWER))).task;
const drain = () => w.service.tasks.drain();

describe("the start of a run", () => {
  test("makes a task when it was dispatched: title, ticket, TRIAGE, and the run as snapshot", async () => {
    w.identity.foremen.set(factoryUid, { agentUid: newUid(), agentName: "lead" });
    const { runUid } = await w.factories.dispatchRun(
      { factoryUid, prompt: "Mend it", title: "Mend", ticketRef: "jira:X-1" },
      call(MEMBER),
    );
    await drain();
    const { task } = await w.tasks.getTaskByRun({ factoryUid, runUid }, call(VIEWER));
    expect(task).toMatchObject({
      title: "Mend",
      stage: "TRIAGE",
      runUid,
      factoryUid,
      teamUid: TEAM,
      ticketSource: "jira",
      ticketId: "X-1",
    });
    const [event] = await w.rows(
      "SELECT type, actor_uid, request_id, payload->>'task_uid' AS task FROM stream.event_pending WHERE entity = 'task'",
    );
    expect(event).toEqual({ type: "millwright.task.created.v1", actor_uid: "u-1", request_id: "r-1", task: task?.uid });
  });

  test("makes none otherwise", async () => {
    w.orchestrator.created({ teamUid: TEAM, factoryUid });
    w.orchestrator.created({ teamUid: TEAM, factoryUid, origin: "dispatch", parentRunUid: newUid() });
    w.orchestrator.created({ teamUid: TEAM, origin: "dispatch" });
    w.orchestrator.created({ teamUid: TEAM, factoryUid: newUid(), origin: "dispatch" });
    await drain();
    expect(await w.rows("SELECT 1 FROM tasks")).toEqual([]);
    expect(await w.rows("SELECT 1 FROM stream.dead_lettered_events")).toEqual([]);
  });

  test("binds a conversation to one live task", async () => {
    const first = dispatched("First");
    dispatched("Second", { conversationUid: first.conversationUid });
    await drain();
    expect(await w.rows("SELECT title FROM tasks")).toEqual([{ title: "First" }]);
  });

  test("whose event has no title creates a task with the run's title, requested once for all of them", async () => {
    const untitled = (uid = newUid()) =>
      w.orchestrator.created({ uid, origin: "dispatch", teamUid: TEAM, factoryUid, isUntitled: true });
    const [first, second, gone] = [untitled(), untitled(), untitled()];
    // not a dispatch, so its title is not required
    w.orchestrator.created({ teamUid: TEAM, factoryUid, isUntitled: true });
    w.orchestrator.titles.set(first.uid, "Mend the roof").set(second.uid, "Mend the door");
    w.orchestrator.titlesAsked.length = 0;
    await drain();
    expect(await Promise.all([first, second, gone].map(async (run) => (await taskOf(run))?.title))).toEqual([
      "Mend the roof",
      "Mend the door",
      "Untitled",
    ]);
    expect(w.orchestrator.titlesAsked).toEqual([[first.uid, second.uid, gone.uid]]);
  });

  test("without a title still makes a task that can be shown", async () => {
    const run = dispatched(" ");
    await drain();
    expect((await taskOf(run))?.title).toBe("Untitled");
  });
});

describe("the retry of a run", () => {
  const retried = (of: FakeRun, more: object = {}) =>
    w.orchestrator.created({ teamUid: TEAM, factoryUid, retryOfRunUid: of.uid, ...more });

  test("that is a task's current run moves the task, and the first run still finds the task", async () => {
    const run = dispatched();
    await drain();
    const before = (await taskOf(run))!;
    const retry = retried(run);
    await drain();
    const task = (await taskOf(retry))!;
    expect(task).toMatchObject({
      uid: before.uid,
      conversationUid: retry.conversationUid,
      runUid: run.uid,
      stage: "TRIAGE",
      title: before.title,
    });
    expect(await taskOf(run)).toEqual(task);
    expect((await w.eventTypes()).at(-1)).toBe("task.updated");
    w.orchestrator.finished(retry, "CANCELLED");
    await drain();
    expect((await taskOf(run))!.stage).toBe("CANCELLED");
  });

  test("does not move a task of another run or another team", async () => {
    const run = dispatched();
    await drain();
    const first = retried(run);
    await drain();
    const [second, foreign, child] = [
      retried(run),
      retried(first, { teamUid: OTHER_TEAM }),
      retried(first, { parentRunUid: newUid() }),
    ];
    await drain();
    for (const other of [second, foreign, child])
      await expect(taskOf(other)).rejects.toEqual(domainError({ reason: "task_not_found" }));
    expect((await taskOf(first))!.conversationUid).toBe(first.conversationUid);
  });
});

test("starts that arrive together have effect in their order: the newest run of each conversation is current", async () => {
  const continued = (conversationUid: string, teamUid = TEAM) =>
    w.orchestrator.created({ teamUid, factoryUid, conversationUid });
  const first = dispatched("First");
  continued(first.conversationUid);
  const second = dispatched("Second");
  const newest = continued(first.conversationUid);
  continued(first.conversationUid, OTHER_TEAM);
  w.orchestrator.created({ teamUid: TEAM, factoryUid });
  const retry = w.orchestrator.created({ teamUid: TEAM, factoryUid, retryOfRunUid: newest.uid });
  const last = continued(retry.conversationUid);
  continued(first.conversationUid); // the task has left this conversation
  await drain();
  expect(
    await w.rows(
      "SELECT title, conversation_uid AS conversation, current_run_uid AS current FROM tasks ORDER BY title",
    ),
  ).toEqual([
    { title: "First", conversation: retry.conversationUid, current: last.uid },
    { title: "Second", conversation: second.conversationUid, current: second.uid },
  ]);
});

describe("the end of a run", () => {
  test("that cancels the task's current top-level run cancels the task in any stage", async () => {
    const run = dispatched();
    await drain();
    await w.tasks.updateTask(
      { factoryUid, task: { uid: (await taskOf(run))!.uid, stage: "COMPLETE" }, updateMask: { paths: ["stage"] } },
      call(OWNER),
    );
    w.orchestrator.finished(run, "CANCELLED");
    await drain();
    expect((await taskOf(run))?.stage).toBe("CANCELLED");
    expect((await w.eventTypes()).at(-1)).toBe("task.updated");
  });

  test("of a child, of an earlier run of the conversation, or in another state, does not change it", async () => {
    const run = dispatched();
    w.orchestrator.finished(run, "SUCCEEDED");
    const child = w.orchestrator.created({ teamUid: TEAM, factoryUid, rootRunUid: run.uid, parentRunUid: run.uid });
    w.orchestrator.finished(child, "CANCELLED");
    const next = w.orchestrator.created({ teamUid: TEAM, factoryUid, conversationUid: run.conversationUid });
    w.orchestrator.finished(run, "CANCELLED");
    await drain();
    expect(await taskOf(run)).toMatchObject({ stage: "TRIAGE", runUid: run.uid });
    w.orchestrator.finished(next, "CANCELLED");
    await drain();
    expect(await taskOf(run)).toMatchObject({ stage: "CANCELLED", runUid: run.uid });
  });

  describe("cancelled", () => {
    const setStage = async (run: FakeRun, stage: string) =>
      w.tasks.updateTask(
        { factoryUid, task: { uid: (await taskOf(run))!.uid, stage }, updateMask: { paths: ["stage"] } },
        call(MEMBER),
      );

    test("does not overwrite a stage set after the cancellation, and cancels the task if it is cancelled again", async () => {
      const run = dispatched();
      await drain();
      w.orchestrator.finished(run, "CANCELLED");
      await setStage(run, "REVIEW");
      await drain();
      expect((await taskOf(run))?.stage).toBe("REVIEW");
      w.orchestrator.finished(run, "CANCELLED");
      await drain();
      expect((await taskOf(run))?.stage).toBe("CANCELLED");
    });

    test("does not overwrite a stage set after the cancellation if a personal run is newer in the conversation", async () => {
      const run = dispatched();
      await drain();
      w.orchestrator.created({ conversationUid: run.conversationUid });
      w.orchestrator.finished(run, "CANCELLED");
      await setStage(run, "REVIEW");
      await drain();
      expect((await taskOf(run))?.stage).toBe("REVIEW");
    });

    test("does not overwrite a stage set after the task itself was cancelled", async () => {
      const run = dispatched();
      await drain();
      await w.tasks.cancelTask({ factoryUid, taskUid: (await taskOf(run))!.uid }, call(MEMBER));
      w.orchestrator.finished(run, "CANCELLED");
      await setStage(run, "SPEC");
      await drain();
      expect((await taskOf(run))?.stage).toBe("SPEC");
    });

    test("does not change a task that was created for its conversation afterwards", async () => {
      const run = w.orchestrator.created({ teamUid: TEAM, factoryUid });
      w.orchestrator.finished(run, "CANCELLED");
      const request = { factoryUid, title: "Again", conversationUid: run.conversationUid, stage: "SPEC" };
      await w.tasks.createTask(request, call(MEMBER));
      await drain();
      expect((await taskOf(run))?.stage).toBe("SPEC");
    });
  });

  test("delivered twice changes nothing the second time", async () => {
    const run = dispatched();
    w.orchestrator.finished(run, "CANCELLED");
    await drain();
    const task = await taskOf(run);
    w.clock.advance(1_000);
    w.orchestrator.finished(run, "CANCELLED");
    await drain();
    expect(await taskOf(run)).toEqual(task);
  });
});

test("50 dispatches make exactly 50 tasks while consumers race and their connections are cut", async () => {
  w.orchestrator.pageSize = 7;
  const replicas = [w.service, await w.replica(), await w.replica()];
  const runs = Array.from({ length: 50 }, (_, n) => dispatched(`Work ${n}`));
  for (let round = 0; round < 12; round += 1) {
    const draining = replicas.map(({ tasks }) => tasks.drain().catch(() => {}));
    await w.rows(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'factories'",
    );
    await Promise.all(draining);
  }
  await eventually(() => drain().then(() => true)); // a closed connection may only be detected when it is used
  const tasks = await w.rows<{ run: string }>("SELECT run_uid AS run FROM tasks");
  expect(tasks.map(({ run }) => run).sort()).toEqual(runs.map(({ uid }) => uid).sort());
  expect((await w.eventTypes()).filter((type) => type === "task.created")).toHaveLength(50);
  expect(await w.rows("SELECT 1 FROM stream.dead_lettered_events")).toEqual([]);
});

test("deleting a factory deletes its tasks, and frees their conversations", async () => {
  const run = dispatched();
  await drain();
  await w.factories.deleteFactory({ uid: factoryUid }, call(OWNER));
  factoryUid = (await w.aFactory()).uid;
  const again = dispatched("Again", { conversationUid: run.conversationUid });
  await drain();
  expect((await taskOf(again))?.title).toBe("Again");
});

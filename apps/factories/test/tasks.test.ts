import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { factories } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import {
  aRun,
  MEMBER,
  NOW,
  OTHER_TEAM,
  OWNER,
  startWorld,
  OTHER_TEAM_OWNER,
  TEAM,
  VIEWER,
  type World,
} from "./setup.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  w.clock.set(NOW);
  factoryUid = (await w.aFactory()).uid;
});
afterAll(() => w.stop());

/** Creates a task by a dispatch. */
async function aTask(title: string, more: { factoryUid?: string; teamUid?: string } = {}): Promise<factories.Task> {
  const run = w.orchestrator.created({ origin: "dispatch", teamUid: TEAM, factoryUid, title, ...more });
  await w.service.tasks.drain();
  const { task } = await w.tasks.getTaskByRun(
    { factoryUid: run.factoryUid, runUid: run.uid },
    call(more.teamUid === OTHER_TEAM ? OTHER_TEAM_OWNER : VIEWER),
  );
  if (!task) throw new Error("no task");
  return task;
}

type List = Partial<Omit<Parameters<World["tasks"]["listTasks"]>[0], "$typeName" | "$unknown">>;
const list = (request: List = {}, caller = VIEWER) => w.tasks.listTasks({ factoryUid, ...request }, call(caller));
const titles = async (request: List = {}) => (await list(request)).tasks.map(({ title }) => title);
const update = (
  taskUid: string,
  task: { title?: string; description?: string; stage?: string },
  paths: string[],
  caller = MEMBER,
) => w.tasks.updateTask({ factoryUid, task: { uid: taskUid, ...task }, updateMask: { paths } }, call(caller));
const at = (offsetMs: number) => timestampFromDate(new Date(NOW.getTime() + offsetMs));

describe("finding a task", () => {
  test("by its uid, its conversation and any run of its tree", async () => {
    const task = await aTask("One");
    expect(task).toMatchObject({ title: "One", stage: "TRIAGE", factoryUid, teamUid: TEAM });
    expect((await w.tasks.getTask({ factoryUid, taskUid: task.uid }, call(VIEWER))).task).toEqual(task);
    const { conversationUid } = task;
    expect((await w.tasks.getTaskByConversation({ factoryUid, conversationUid }, call(VIEWER))).task).toEqual(task);
    const child = w.orchestrator.created({
      teamUid: TEAM,
      factoryUid,
      rootRunUid: task.runUid,
      parentRunUid: task.runUid,
    });
    expect((await w.tasks.getTaskByRun({ factoryUid, runUid: child.uid }, call(VIEWER))).task).toEqual(task);
  });

  test("finds nothing across factories, teams, or for what is no uid", async () => {
    const other = (await w.aFactory({ name: "Other" })).uid;
    const theirs = (await w.aFactory({ name: "Theirs" }, OTHER_TEAM_OWNER)).uid;
    const [here, there] = [
      await aTask("Elsewhere", { factoryUid: other }),
      await aTask("Theirs", { factoryUid: theirs, teamUid: OTHER_TEAM }),
    ];
    const absent = domainError({ kind: "not_found", reason: "task_not_found" });
    for (const { uid, conversationUid, runUid } of [
      here,
      there,
      { uid: newUid(), conversationUid: newUid(), runUid: newUid() },
      { uid: "x", conversationUid: "x", runUid: "x" },
    ]) {
      await expect(w.tasks.getTask({ factoryUid, taskUid: uid }, call(VIEWER))).rejects.toEqual(absent);
      await expect(w.tasks.getTaskByConversation({ factoryUid, conversationUid }, call(VIEWER))).rejects.toEqual(
        absent,
      );
      await expect(w.tasks.getTaskByRun({ factoryUid, runUid }, call(VIEWER))).rejects.toEqual(absent);
      await expect(update(uid, { title: "Mine" }, ["title"])).rejects.toEqual(absent);
    }
    expect((await w.tasks.getTask({ factoryUid: theirs, taskUid: there.uid }, call(OTHER_TEAM_OWNER))).task).toEqual(
      there,
    );
  });

  test("requires a search value", async () => {
    await expect(w.tasks.getTaskByRun({ factoryUid }, call(VIEWER))).rejects.toEqual(
      domainError({ reason: "run_id_required" }),
    );
    await expect(w.tasks.getTaskByConversation({ factoryUid }, call(VIEWER))).rejects.toEqual(
      domainError({ reason: "conversation_id_required" }),
    );
  });
});

describe("changing a task", () => {
  test("replaces the masked members only, updates the time and emits an event", async () => {
    const task = await aTask("Before");
    w.clock.advance(1_500);
    const { task: next } = await update(task.uid, { title: "ignored", stage: "REVIEW", description: "d" }, [
      "stage",
      "description",
    ]);
    expect(next).toEqual({ ...task, stage: "REVIEW", description: "d", updatedAt: at(1_500) });
    expect((await w.eventTypes()).at(-1)).toBe("task.updated");
    expect((await update(task.uid, { stage: "TRIAGE" }, ["stage"])).task).toMatchObject({
      stage: "TRIAGE",
      description: "d",
    });
  });

  test.each([
    ["unset", undefined],
    ["empty", ""],
  ])("a masked description that is %s is cleared", async (_what, description) => {
    const { uid } = await aTask("Described");
    await update(uid, { description: "d" }, ["description"]);
    const { task } = await update(uid, description === undefined ? {} : { description }, ["description"]);
    expect(task?.description).toBeUndefined();
  });

  test("an empty mask changes nothing, not even the time", async () => {
    const task = await aTask("Still");
    w.clock.advance(1_000);
    const before = (await w.eventTypes()).length;
    expect((await update(task.uid, { title: "x" }, [])).task).toEqual(task);
    expect(await w.eventTypes()).toHaveLength(before);
  });

  test.each([
    ["an empty title", { title: " " }, ["title"], "title_required"],
    ["no title", {}, ["title"], "title_required"],
    ["an unknown stage", { stage: "DONE" }, ["stage"], "invalid_stage"],
    ["a stage in other case", { stage: "review" }, ["stage"], "invalid_stage"],
    ["a field that is fixed", {}, ["run_uid"], "unknown_field"],
    ["NUL in the title", { title: "a\0" }, ["title"], "invalid_text"],
  ])("refuses %s", async (_what, change, paths, reason) => {
    const task = await aTask("Kept");
    await expect(update(task.uid, change, paths)).rejects.toEqual(domainError({ kind: "invalid_argument", reason }));
    expect((await w.tasks.getTask({ factoryUid, taskUid: task.uid }, call(VIEWER))).task).toEqual(task);
  });

  test("concurrently loses no write of another member", async () => {
    const { uid } = await aTask("Racing");
    await Promise.all([
      update(uid, { title: "Named" }, ["title"]),
      update(uid, { description: "d" }, ["description"]),
      update(uid, { stage: "SPEC" }, ["stage"]),
    ]);
    expect((await w.tasks.getTask({ factoryUid, taskUid: uid }, call(VIEWER))).task).toMatchObject({
      title: "Named",
      description: "d",
      stage: "SPEC",
    });
  });
});

describe("creating a task", () => {
  const create = (conversationUid: string, more: object = {}, caller = MEMBER) =>
    w.tasks.createTask({ factoryUid, title: "New", conversationUid, ...more }, call(caller));
  const aRunHere = () => w.orchestrator.created({ teamUid: TEAM });

  test("stores the newest run, its creator and its ticket, and emits an event", async () => {
    const first = aRunHere();
    const newest = w.orchestrator.created({
      teamUid: TEAM,
      conversationUid: first.conversationUid,
      request: { metadata: { ticket_source: "jira", ticket_id: "X-1" } } as never,
    });
    const { task } = await create(first.conversationUid.toUpperCase(), { stage: "SPEC", description: "" });
    expect(task).toMatchObject({
      runUid: newest.uid,
      conversationUid: first.conversationUid,
      starterUid: "u-1",
      stage: "SPEC",
      ticketSource: "jira",
      ticketId: "X-1",
      teamUid: TEAM,
    });
    expect(task?.description).toBeUndefined();
    expect((await w.eventTypes()).at(-1)).toBe("task.created");
  });

  test("needs task.manage, a title, a known stage and a conversation of the factory's team", async () => {
    const { conversationUid } = aRunHere();
    const theirs = w.orchestrator.created({ teamUid: OTHER_TEAM }).conversationUid;
    await expect(create(conversationUid, {}, VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
    await expect(create(conversationUid, { title: " " })).rejects.toEqual(domainError({ reason: "title_required" }));
    await expect(create(conversationUid, { stage: "DONE" })).rejects.toEqual(domainError({ reason: "invalid_stage" }));
    for (const unusable of [theirs, newUid(), "x", ""])
      await expect(create(unusable)).rejects.toEqual(
        domainError({ kind: "invalid_argument", reason: "invalid_conversation" }),
      );
    expect(await w.rows("SELECT 1 FROM tasks")).toEqual([]);
  });

  test("binds a conversation once, over all factories, and again after a delete", async () => {
    const { conversationUid } = aRunHere();
    const other = (await w.aFactory({ name: "Other" })).uid;
    const raced = await Promise.allSettled(
      [1, 2, 3, 4].map((n) => create(conversationUid, { factoryUid: n % 2 ? factoryUid : other })),
    );
    const [made] = raced.flatMap((one) => (one.status === "fulfilled" ? [one.value.task!] : []));
    expect(raced.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const refusals = raced.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(refusals).toEqual(Array(3).fill(domainError({ kind: "conflict", reason: "conversation_bound" })));
    await w.tasks.deleteTask({ factoryUid: made!.factoryUid, taskUid: made!.uid }, call(MEMBER));
    await expect(
      w.tasks.deleteTask({ factoryUid: made!.factoryUid, taskUid: made!.uid }, call(MEMBER)),
    ).rejects.toEqual(domainError({ reason: "task_not_found" }));
    expect((await create(conversationUid)).task?.uid).not.toBe(made!.uid);
    expect((await w.eventTypes()).slice(-3)).toEqual(["task.created", "task.deleted", "task.created"]);
  });

  test("with a known key returns the task as it was created, whatever happened to it since", async () => {
    const { conversationUid } = aRunHere();
    const { task } = await create(conversationUid, { idempotencyKey: "k" });
    expect((await create(conversationUid, { idempotencyKey: "k" })).task).toEqual(task);
    w.clock.advance(1_000);
    await update(task!.uid, { title: "Changed", stage: "REVIEW" }, ["title", "stage"]);
    expect((await create(conversationUid, { idempotencyKey: "k" })).task).toEqual(task);
    await w.tasks.deleteTask({ factoryUid, taskUid: task!.uid }, call(MEMBER));
    expect((await create(conversationUid, { idempotencyKey: "k" })).task).toEqual(task);
    expect((await list()).tasks).toEqual([]);
    await expect(create(conversationUid, { idempotencyKey: "k", title: "Other" })).rejects.toEqual(
      domainError({ reason: "idempotency_mismatch" }),
    );
  });

  test("with one key in two factories creates two tasks", async () => {
    const other = (await w.aFactory({ name: "Other" })).uid;
    const [here, there] = [
      await create(aRunHere().conversationUid, { idempotencyKey: "k" }),
      await create(aRunHere().conversationUid, { idempotencyKey: "k", factoryUid: other }),
    ];
    expect([here.task?.factoryUid, there.task?.factoryUid]).toEqual([factoryUid, other]);
  });
});

describe("cancelling a task", () => {
  const cancel = (taskUid: string, caller = MEMBER, idempotencyKey = "") =>
    w.tasks.cancelTask({ factoryUid, taskUid, idempotencyKey }, call(caller));

  test("cancels the tree of the current run in its name, then the task", async () => {
    const task = await aTask("Going");
    const newest = w.orchestrator.created({ teamUid: TEAM, conversationUid: task.conversationUid });
    expect((await cancel(task.uid)).task).toMatchObject({ uid: task.uid, stage: "CANCELLED", runUid: task.runUid });
    expect(w.orchestrator.cancelled.at(-1)).toEqual({ runUid: newest.uid, tree: true, cause: task.uid });
  });

  test("a repetition with its key cancels no newer run and leaves the stage of the newer run", async () => {
    const task = await aTask("Going");
    expect((await cancel(task.uid, MEMBER, "k")).task?.stage).toBe("CANCELLED");
    expect((await cancel(task.uid, MEMBER, "k")).task?.stage).toBe("CANCELLED");
    w.orchestrator.created({ teamUid: TEAM, conversationUid: task.conversationUid });
    await update(task.uid, { stage: "IMPLEMENT" }, ["stage"]);
    expect((await cancel(task.uid, MEMBER, "k")).task).toMatchObject({ uid: task.uid, stage: "IMPLEMENT" });
    expect(w.orchestrator.cancelled.filter(({ cause }) => cause === task.uid)).toMatchObject([{ runUid: task.runUid }]);
    await expect(cancel(task.uid, VIEWER, "k")).rejects.toEqual(domainError({ reason: "not_authorized" }));
  });

  test("a key that was refused cancels the same run later", async () => {
    const task = await aTask("Going");
    await expect(cancel(task.uid, VIEWER, "k")).rejects.toEqual(domainError({ reason: "not_authorized" }));
    const run = w.orchestrator.runs.find(({ uid }) => uid === task.runUid)!;
    run.isHidden = true;
    await expect(cancel(task.uid, MEMBER, "k")).rejects.toEqual(domainError({ reason: "run_access_denied" }));
    run.isHidden = false;
    expect((await cancel(task.uid, MEMBER, "k")).task?.stage).toBe("CANCELLED");
  });

  test("one key cancels two tasks", async () => {
    for (const title of ["One", "Two"])
      expect((await cancel((await aTask(title)).uid, MEMBER, "k")).task?.stage).toBe("CANCELLED");
  });

  test("changes nothing when the run cannot be cancelled, is hidden or is not there", async () => {
    const task = await aTask("Kept");
    const hidden = w.orchestrator.created({ teamUid: TEAM, conversationUid: task.conversationUid, isHidden: true });
    await expect(cancel(task.uid)).rejects.toEqual(
      domainError({ kind: "permission_denied", reason: "run_access_denied" }),
    );
    Object.assign(hidden, { isHidden: false, state: "CANCELLED" });
    await expect(cancel(task.uid)).rejects.toEqual(domainError({ reason: "run_already_finished" }));
    w.orchestrator.runs.splice(0);
    await expect(cancel(task.uid)).rejects.toEqual(domainError({ kind: "not_found", reason: "run_not_found" }));
    await expect(cancel(newUid())).rejects.toEqual(domainError({ reason: "task_not_found" }));
    await expect(cancel(task.uid, VIEWER)).rejects.toEqual(
      domainError({ kind: "permission_denied", reason: "not_authorized" }),
    );
    expect((await w.tasks.getTask({ factoryUid, taskUid: task.uid }, call(VIEWER))).task).toEqual(task);
  });
});

describe("a run", () => {
  test("reads and changes tasks of its own factory, and sees no other", async () => {
    const other = (await w.aFactory({ name: "Other" })).uid;
    const [own, foreign] = [await aTask("Own"), await aTask("Foreign", { factoryUid: other })];
    const caller = aRun(own.runUid);
    expect((await update(own.uid, { stage: "IMPLEMENT" }, ["stage"], caller)).task?.stage).toBe("IMPLEMENT");
    expect((await list({}, caller)).tasks).toHaveLength(1);
    expect((await w.factories.listFactories({}, call(caller))).factories.map(({ uid }) => uid)).toEqual([factoryUid]);
    const hidden = domainError({ kind: "not_found", reason: "factory_not_found" });
    await expect(w.tasks.getTask({ factoryUid: other, taskUid: foreign.uid }, call(caller))).rejects.toEqual(hidden);
    await expect(w.tasks.updateTask({ factoryUid: other, task: { uid: foreign.uid } }, call(caller))).rejects.toEqual(
      hidden,
    );
    await expect(w.factories.getFactory({ uid: other }, call(caller))).rejects.toEqual(hidden);
    const homeless = w.orchestrator.created({ teamUid: TEAM });
    await expect(list({}, aRun(homeless.uid))).rejects.toEqual(hidden);
    expect((await w.factories.listFactories({}, call(aRun(homeless.uid)))).factories).toEqual([]);
  });
});

describe("the list", () => {
  test("filters by stages, a literal part of the title, and strict bounds", async () => {
    for (const title of ["Fix 100% of it", "fix_it", "Fix it", "\\back"]) {
      await aTask(title);
      w.clock.advance(1_000);
    }
    const [first] = (await list({ q: "100%" })).tasks;
    await update(first!.uid, { stage: "REVIEW" }, ["stage"]);
    expect(await titles()).toEqual(["\\back", "Fix it", "fix_it", "Fix 100% of it"]);
    expect(await titles({ q: "FIX" })).toHaveLength(3);
    expect(await titles({ q: "%" })).toEqual(["Fix 100% of it"]);
    expect(await titles({ q: "_" })).toEqual(["fix_it"]);
    expect(await titles({ q: "\\" })).toEqual(["\\back"]);
    expect(await titles({ stages: ["REVIEW"] })).toEqual(["Fix 100% of it"]);
    expect(await titles({ stages: ["REVIEW", "TRIAGE", "TRIAGE"] })).toHaveLength(4);
    expect(await titles({ createdAfter: at(1_000) })).toEqual(["\\back", "Fix it"]);
    expect(await titles({ createdBefore: at(1_000) })).toEqual(["Fix 100% of it"]);
    expect(await titles({ updatedAfter: at(3_000) })).toEqual(["Fix 100% of it"]);
    expect(await titles({ sortBy: "updated_at", sortOrder: "asc" })).toEqual([
      "fix_it",
      "Fix it",
      "\\back",
      "Fix 100% of it",
    ]);
  });

  test("filters by the e-mail address of the run's creator, and matches nothing for non-members", async () => {
    await aTask("Mine");
    w.identity.users.set("ada@example.com", "u-1");
    expect(await titles({ createdBy: ["stranger@example.com", " ADA@example.com "] })).toEqual(["Mine"]);
    expect(await titles({ createdBy: ["stranger@example.com"] })).toEqual([]);
  });

  test.each([
    ["an unknown stage", { stages: ["DONE"] }, "invalid_stage"],
    ["an unknown sort", { sortBy: "title" }, "invalid_sort"],
    ["an unknown order", { sortOrder: "up" }, "invalid_sort"],
    ["a made-up cursor", { pageToken: "AAAA" }, "invalid_cursor"],
    ["an impossible time", { createdAfter: { seconds: 10n ** 15n, nanos: 0 } }, "invalid_time"],
  ])("refuses %s", async (_what, request, reason) => {
    await expect(list(request as List)).rejects.toEqual(domainError({ kind: "invalid_argument", reason }));
  });

  test("a cursor is valid for its sort and filters only, with any page size; an explicit default equals an omitted one", async () => {
    for (const title of ["a", "b", "c"]) await aTask(title);
    const { nextPageToken } = await list({ pageSize: 1 });
    for (const other of [
      { sortOrder: "asc" },
      { sortBy: "updated_at" },
      { q: "a" },
      { stages: ["TRIAGE"] },
      { createdAfter: at(0) },
      { createdBy: ["a@example.com"] },
      { factoryUid: (await w.aFactory()).uid },
    ]) {
      await expect(list({ pageToken: nextPageToken, ...other })).rejects.toEqual(
        domainError({ reason: "invalid_cursor" }),
      );
    }
    expect(
      (await list({ pageToken: nextPageToken, pageSize: 2, sortBy: "created_at", sortOrder: "desc" })).tasks,
    ).toHaveLength(2);
  });

  test.each([
    ["created_at", "desc"],
    ["created_at", "asc"],
    ["updated_at", "desc"],
    ["updated_at", "asc"],
  ])(
    "paged by %s %s while tasks are created and changed: unchanged tasks are returned once, none twice",
    async (sortBy, sortOrder) => {
      const still: string[] = [];
      for (let n = 0; n < 24; n += 1) {
        still.push((await aTask(`still ${n}`)).uid);
        if (n % 8 === 7) w.clock.advance(1); // three timestamps, each shared by eight tasks
      }
      const moving = await Promise.all([1, 2, 3].map((n) => aTask(`moving ${n}`)));
      w.clock.advance(1);
      const seen: string[] = [];
      let pageToken = "";
      for (let page = 0; page === 0 || pageToken !== ""; page += 1) {
        const { tasks, nextPageToken } = await list({ sortBy, sortOrder, pageSize: 5, pageToken });
        expect(tasks.length).toBeGreaterThan(0);
        seen.push(...tasks.map(({ uid }) => uid));
        pageToken = nextPageToken;
        w.clock.advance(1);
        for (const { uid } of moving) await update(uid, { description: `page ${page}` }, ["description"], OWNER);
        await aTask(`new on page ${page}`);
      }
      expect(seen).toHaveLength(new Set(seen).size);
      expect(still.filter((uid) => !seen.includes(uid))).toEqual([]);
    },
  );

  test("stores milliseconds, so that equal times are equal", async () => {
    w.clock.set(new Date(NOW.getTime() + 7));
    expect(timestampDate((await aTask("ms")).createdAt!).getUTCMilliseconds()).toBe(7);
  });
});

describe("the tasks of a team", () => {
  const ofTeam = (request: { teamUid?: string; stage?: string; pageSize?: number; pageToken?: string }, by = VIEWER) =>
    w.tasks.listTeamTasks({ teamUid: TEAM, stage: "REVIEW", ...request }, call(by));
  const names = async (request = {}, by = VIEWER) => (await ofTeam(request, by)).tasks.map(({ title }) => title);
  const inReview = async (title: string, more: { factoryUid?: string } = {}): Promise<factories.Task> => {
    const task = await aTask(title, more);
    w.clock.advance(1_000);
    const ref = { factoryUid: task.factoryUid, task: { uid: task.uid, stage: "REVIEW" } };
    return (await w.tasks.updateTask({ ...ref, updateMask: { paths: ["stage"] } }, call(MEMBER))).task!;
  };

  test("are those of all its factories in one stage, most recently changed first", async () => {
    const other = (await w.aFactory({ name: "Other" })).uid;
    await aTask("Triage");
    await inReview("First");
    await inReview("Second", { factoryUid: other });
    expect(await names()).toEqual(["Second", "First"]);
    expect(await names({ stage: "TRIAGE" })).toEqual(["Triage"]);
  });

  test("are paged, each once, with a cursor that is bound to team and stage", async () => {
    for (const title of ["a", "b", "c", "d", "e"]) await inReview(title);
    const first = await ofTeam({ pageSize: 2 });
    await inReview("later");
    const second = await ofTeam({ pageSize: 2, pageToken: first.nextPageToken });
    const third = await ofTeam({ pageSize: 2, pageToken: second.nextPageToken });
    expect([first, second, third].flatMap(({ tasks }) => tasks.map(({ title }) => title))).toEqual([
      "e",
      "d",
      "c",
      "b",
      "a",
    ]);
    expect(third.nextPageToken).toBe("");
    await expect(ofTeam({ stage: "SPEC", pageToken: first.nextPageToken })).rejects.toEqual(
      domainError({ reason: "invalid_cursor" }),
    );
  });

  test("leave out deleted tasks and those of deleted factories", async () => {
    const gone = (await w.aFactory({ name: "Gone" })).uid;
    await inReview("Gone", { factoryUid: gone });
    const { uid } = await inReview("Deleted");
    await w.tasks.deleteTask({ factoryUid, taskUid: uid }, call(MEMBER));
    await w.factories.deleteFactory({ uid: gone, cancelRuns: true }, call(OWNER));
    expect(await names()).toEqual([]);
  });

  test("are hidden from other teams and from run tokens", async () => {
    await inReview("Ours");
    const { uid: run } = w.orchestrator.created({ teamUid: TEAM, factoryUid });
    const hidden = domainError({ kind: "not_found", reason: "team_not_found" });
    for (const by of [OTHER_TEAM_OWNER, aRun(run)]) await expect(ofTeam({}, by)).rejects.toEqual(hidden);
    for (const teamUid of [newUid(), "nonsense"]) await expect(ofTeam({ teamUid })).rejects.toEqual(hidden);
    await expect(ofTeam({ stage: "DONE" })).rejects.toEqual(domainError({ reason: "invalid_stage" }));
  });
});

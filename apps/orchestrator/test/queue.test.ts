import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid, type TeamUid } from "@millwright/ids";
import { HeldExecution, hold, holdStarted } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: 24 });
});
afterAll(() => platform.close());

/** A platform whose queue holds nothing else: for what is shared between teams. */
async function alone<T>(overrides: Parameters<typeof testPlatform>[0], f: (own: TestPlatform) => Promise<T>): Promise<T> {
  const own = await testPlatform(overrides);
  try {
    return await f(own);
  } finally {
    await own.close();
  }
}

test("twenty workers that claim at once share the queue: no execution is offered twice", async () => {
  const caller = aCaller();
  const workers = await Promise.all(Array.from({ length: 20 }, () => platform.worker({ teamUid: teamOf(caller), slots: 5 })));
  const created = await platform.life.createRuns(caller, Array.from({ length: 60 }, () => aRun(caller)));
  const ended = new AbortController();
  const polls = workers.map((worker) => platform.life.worker.lease(worker.session, 5, 20_000, ended.signal));
  const claims = workers.map((worker) => platform.claim(worker, 5));
  const offers = (await Promise.all(claims)).flat();
  ended.abort();
  const refs = [...offers, ...(await Promise.all(polls)).flat()].map(({ executionId, attempt }) => `${executionId}.${attempt}`);
  expect(new Set(refs).size).toBe(refs.length);
  const { rows } = await platform.database.sql.query<{ held: number }>("SELECT count(DISTINCT l.execution_id) AS held FROM leases l JOIN runs r ON r.uid = l.run_uid WHERE r.owner_uid = $1", [teamOf(caller)]);
  expect(rows[0]!.held).toBe(await platform.inUse(teamOf(caller)));
  expect(created).toHaveLength(60);
});

test("a cap is never exceeded, whatever claims at once", async () => {
  await alone({ poolSize: 24, limits: { team: 10, agent: 3, factory: 0 } }, async (own) => {
    const caller = aCaller();
    const agents = Array.from({ length: 5 }, () => newUid());
    await own.life.createRuns(caller, agents.flatMap((agentUid) => Array.from({ length: 8 }, () => aRun(caller, { agentUid }))));
    const workers = await Promise.all(Array.from({ length: 20 }, () => own.worker({ slots: 4 })));
    const offers = (await Promise.all(workers.map((worker) => own.claim(worker, 4)))).flat();
    expect(offers).toHaveLength(10);
    expect(await own.inUse(teamOf(caller))).toBe(10);
    for (const agentUid of agents) expect(await own.inUse(agentUid)).toBeLessThanOrEqual(3);
    const [run] = await own.life.createRuns(caller, [aRun(caller)]);
    expect(run!.atCapacity).toBe(true);
    expect(await own.life.getQueueStatus(caller, run!.run.uid)).toMatchObject({ reason: "team_cap" });
  });
});

test("teams take turns: one with a long queue does not hold up another", async () => {
  await alone({}, async (own) => {
    const [busy, small] = [aCaller(), aCaller()];
    await own.life.createRuns(busy, Array.from({ length: 20 }, () => aRun(busy)));
    const worker = await own.worker({ slots: 4 });
    const served: TeamUid[] = [];
    const serve = async (slots: number) => {
      const offers = await own.claim(worker, slots);
      const { assignments } = await own.life.worker.accept(worker.session, offers);
      for (const assignment of assignments) {
        served.push(assignment.job.run.owner.uid as TeamUid);
        await new HeldExecution(own, worker.session, assignment).complete("DONE");
      }
    };
    await serve(4);
    await serve(4);
    await own.life.createRuns(small, Array.from({ length: 3 }, () => aRun(small)));
    for (let n = 0; n < 3; n++) await serve(2);
    expect(served.slice(8).filter((team) => team === teamOf(small))).toHaveLength(3);
  });
});

test("a team that was away has saved nothing up", async () => {
  await alone({}, async (own) => {
    const [first, late] = [aCaller(), aCaller()];
    await own.life.createRuns(first, Array.from({ length: 30 }, () => aRun(first)));
    const worker = await own.worker();
    const serve = async () => {
      const held = await hold(own, worker);
      await held.complete("DONE");
      return held.assignment.job.run.owner.uid;
    };
    for (let n = 0; n < 10; n++) await serve();
    await own.life.createRuns(late, Array.from({ length: 10 }, () => aRun(late)));
    const next = [];
    for (let n = 0; n < 8; n++) next.push(await serve());
    expect(next.filter((team) => team === teamOf(late))).toHaveLength(4);
  });
});

test("descendants are served before roots of the same team", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const root = await platform.run(caller);
  const held = await holdStarted(platform, worker);
  await platform.run(caller);
  const child = await platform.run(caller, { parentRunUid: root.uid, agentUid: newUid() });
  expect(child).toMatchObject({ depth: 1, rootRunUid: root.uid, source: "ORCHESTRATION" });
  const next = await hold(platform, worker);
  expect(next.assignment.job.run.runUid).toBe(child.uid);
  await held.complete("DONE");
});

test("a worker gets only what is meant for it", async () => {
  await alone({}, async (own) => {
    const [ours, theirs] = [aCaller(), aCaller()];
    const routed = await own.run(ours, { config: { worker_host: "mac" } });
    const unrouted = await own.run(theirs);
    const codex = await own.run(ours, { config: { harness: "codex" } });
    const user = await own.run(ours, { owner: { type: "user", uid: ours.principal.uid } });
    const taken = async (worker: Awaited<ReturnType<TestPlatform["worker"]>>) => {
      const { assignments } = await own.life.worker.accept(worker.session, await own.claim(worker, 9));
      return assignments.map(({ job }) => job.run.runUid).toSorted();
    };
    expect(await taken(await own.worker({ teamUid: teamOf(ours), host: "linux" }))).toEqual([]);
    expect(await taken(await own.worker({ teamUid: teamOf(ours), host: "mac" }))).toEqual([routed.uid]);
    const platformWorker = await own.worker({ host: "mac", slots: 9 });
    expect((await taken(platformWorker)).concat(await taken(platformWorker)).toSorted()).toEqual([unrouted.uid, user.uid].toSorted());
    expect(await taken(await own.worker({ harness: "codex" }))).toEqual([codex.uid]);
  });
});

test("a waiting poll is answered when work comes, and ends when its worker goes", async () => {
  platform.life.start();
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const poll = platform.life.worker.lease(worker.session, 1, 20_000, new AbortController().signal);
  const run = await platform.run(caller);
  expect(await poll).toHaveLength(1);
  expect((await platform.getRun(caller, run.uid)).state).toBe("PENDING");
  const gone = new AbortController();
  const abandoned = platform.life.worker.lease(worker.session, 1, 20_000, gone.signal);
  gone.abort();
  expect(await abandoned).toEqual([]);
});

test("a draining worker is offered nothing", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  await platform.run(caller);
  await platform.life.worker.heartbeat(worker.session, { state: "DRAINING", freeSlots: 1, leases: [] });
  const lease = async () => platform.life.worker.lease(await platform.life.worker.authenticate(worker.token), 1, 20_000, new AbortController().signal);
  expect(await lease()).toEqual([]);
  await platform.life.worker.heartbeat(worker.session, { state: "READY", freeSlots: 1, leases: [] });
  expect(await lease()).toHaveLength(1);
});

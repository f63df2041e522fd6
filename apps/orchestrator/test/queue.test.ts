import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid, type TeamUid } from "@millwright/ids";
import { DEFAULT_QUEUE_SETTINGS } from "../src/catalog/domain/queue-settings.ts";
import { ActiveExecution, acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: 24 });
});
afterAll(() => platform.close());

/** Runs `f` on a platform with a queue of its own, for tests of state that teams share. */
async function alone<T>(
  overrides: Parameters<typeof testPlatform>[0],
  f: (own: TestPlatform) => Promise<T>,
): Promise<T> {
  const own = await testPlatform(overrides);
  try {
    return await f(own);
  } finally {
    await own.close();
  }
}

test("twenty concurrent claims offer no execution twice", async () => {
  const caller = aCaller();
  const workers = await Promise.all(
    Array.from({ length: 20 }, () => platform.worker({ teamUid: teamOf(caller), slots: 5 })),
  );
  const created = await platform.life.createRuns(
    caller,
    Array.from({ length: 60 }, () => aRun(caller)),
  );
  const ended = new AbortController();
  const polls = workers.map((worker) => platform.life.worker.lease(worker.session, 5, 20_000, ended.signal));
  const claims = workers.map((worker) => platform.claim(worker, 5));
  const offers = (await Promise.all(claims)).flat();
  ended.abort();
  const refs = [...offers, ...(await Promise.all(polls)).flat()].map(
    ({ executionId, attempt }) => `${executionId}.${attempt}`,
  );
  expect(new Set(refs).size).toBe(refs.length);
  const { rows } = await platform.database.sql.query<{ leased: number }>(
    "SELECT count(DISTINCT l.execution_id) AS leased FROM leases l JOIN runs r ON r.uid = l.run_uid WHERE r.owner_uid = $1",
    [teamOf(caller)],
  );
  expect(rows[0]!.leased).toBe(await platform.inUse(teamOf(caller)));
  expect(created).toHaveLength(60);
});

test("a limit is never exceeded by concurrent claims", async () => {
  await alone({ poolSize: 24, limits: { team: 10, agent: 3 } }, async (own) => {
    const caller = aCaller();
    const agents = Array.from({ length: 5 }, () => newUid());
    await own.life.createRuns(
      caller,
      agents.flatMap((agentUid) => Array.from({ length: 8 }, () => aRun(caller, { agentUid }))),
    );
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

test("teams take turns: a long queue of one does not delay another", async () => {
  await alone({}, async (own) => {
    const [busy, small] = [aCaller(), aCaller()];
    await own.life.createRuns(
      busy,
      Array.from({ length: 20 }, () => aRun(busy)),
    );
    const worker = await own.worker({ slots: 4 });
    const served: TeamUid[] = [];
    const serve = async (slots: number) => {
      const offers = await own.claim(worker, slots);
      const { assignments } = await own.life.worker.accept(worker.session, offers);
      for (const assignment of assignments) {
        served.push(assignment.job.run.owner.uid as TeamUid);
        await new ActiveExecution(own, worker.session, assignment).complete("DONE");
      }
    };
    await serve(4);
    await serve(4);
    await own.life.createRuns(
      small,
      Array.from({ length: 3 }, () => aRun(small)),
    );
    for (let n = 0; n < 3; n++) await serve(2);
    expect(served.slice(8).filter((team) => team === teamOf(small))).toHaveLength(3);
  });
});

test("an inactive team accumulates no claims", async () => {
  await alone({}, async (own) => {
    const [first, late] = [aCaller(), aCaller()];
    await own.life.createRuns(
      first,
      Array.from({ length: 30 }, () => aRun(first)),
    );
    const worker = await own.worker();
    const serve = async () => {
      const execution = await acceptExecution(own, worker);
      await execution.complete("DONE");
      return execution.assignment.job.run.owner.uid;
    };
    for (let n = 0; n < 10; n++) await serve();
    await own.life.createRuns(
      late,
      Array.from({ length: 10 }, () => aRun(late)),
    );
    const next = [];
    for (let n = 0; n < 8; n++) next.push(await serve());
    expect(next.filter((team) => team === teamOf(late))).toHaveLength(4);
  });
});

/** Claims and finishes executions one after another. Returns the owners that were served. */
async function serveEach(
  own: TestPlatform,
  worker: Awaited<ReturnType<TestPlatform["worker"]>>,
  times: number,
): Promise<string[]> {
  const served: string[] = [];
  for (let n = 0; n < times; n++) {
    const execution = await acceptExecution(own, worker);
    await execution.complete("DONE");
    served.push(execution.assignment.job.run.owner.uid);
  }
  return served;
}

const countOf = (served: readonly string[], caller: ReturnType<typeof aCaller>): number =>
  served.filter((owner) => owner === teamOf(caller)).length;

test("teams share the platform's workers in proportion to their weights", async () => {
  const [light, heavy] = [aCaller(), aCaller()];
  const weights = new Map<string, number>([
    [teamOf(light), 1],
    [teamOf(heavy), 3],
  ]);
  await alone(
    { queueSettings: ({ owner }) => ({ team: { ...DEFAULT_QUEUE_SETTINGS, weight: weights.get(owner.uid)! } }) },
    async (own) => {
      for (const caller of [light, heavy])
        await own.life.createRuns(
          caller,
          Array.from({ length: 40 }, () => aRun(caller)),
        );
      const served = await serveEach(own, await own.worker(), 40);
      expect(countOf(served, light)).toBe(10);
    },
  );
});

// The queue's clock advances with every claim of the platform's workers, so both teams below start at the clock each
// time. The older team must not win every time.
test("teams that wait for scarce workers take turns, however fast others are served", async () => {
  await alone({}, async (own) => {
    const [flood, single, fast] = [aCaller(), aCaller(), aCaller()];
    const codex = (caller: ReturnType<typeof aCaller>) => aRun(caller, { config: { harness: "codex" } });
    await own.life.createRuns(
      flood,
      Array.from({ length: 20 }, () => codex(flood)),
    );
    await own.life.createRuns(
      fast,
      Array.from({ length: 60 }, () => aRun(fast)),
    );
    await own.life.createRuns(
      single,
      Array.from({ length: 5 }, () => codex(single)),
    );
    const [scarce, plenty] = [await own.worker({ harness: "codex" }), await own.worker()];
    const served: string[] = [];
    for (let n = 0; n < 10; n++) {
      served.push(...(await serveEach(own, scarce, 1)));
      await serveEach(own, plenty, 5);
    }
    expect(countOf(served, single)).toBe(5);
  });
});

test("runs on a team's own workers do not count against its share of the platform's", async () => {
  await alone({}, async (own) => {
    const [equipped, unequipped] = [aCaller(), aCaller()];
    for (const caller of [equipped, unequipped])
      await own.life.createRuns(
        caller,
        Array.from({ length: 30 }, () => aRun(caller)),
      );
    await serveEach(own, await own.worker({ teamUid: teamOf(equipped) }), 20);
    expect(countOf(await serveEach(own, await own.worker(), 10), equipped)).toBe(5);
  });
});

test("the backlog of a capped agent, team or factory does not block other runs", async () => {
  const [capped, free] = [aCaller(), aCaller()];
  const [slowAgent, quickAgent, factoryUid] = [newUid(), newUid(), newUid()];
  const limits = new Map<string | undefined, number>([[slowAgent, 1]]);
  await alone(
    {
      limits: { factory: 2 },
      queueSettings: ({ agentUid }) => ({
        agent: { ...DEFAULT_QUEUE_SETTINGS, concurrencyLimit: limits.get(agentUid) ?? 0 },
      }),
    },
    async (own) => {
      await own.life.createRuns(
        capped,
        Array.from({ length: 30 }, () => aRun(capped, { agentUid: slowAgent })),
      );
      await own.life.createRuns(
        capped,
        Array.from({ length: 30 }, () => aRun(capped, { factoryUid })),
      );
      const [quick] = await own.life.createRuns(capped, [aRun(capped, { agentUid: quickAgent })]);
      const [others] = await own.life.createRuns(free, [aRun(free)]);
      const worker = await own.worker();
      const { assignments } = await own.life.worker.accept(worker.session, await own.claim(worker, 20));
      const runs = assignments.map(({ job }) => job.run.runUid);
      expect(runs).toHaveLength(5); // one of the capped agent, two of the factory, and these two:
      expect(runs).toEqual(expect.arrayContaining([quick!.run.uid, others!.run.uid]));
    },
  );
});

test("a level of priority counts as five minutes of waiting, so that no run waits for ever", async () => {
  const caller = aCaller();
  const [urgent, later] = [newUid(), newUid()];
  const priorities = new Map<string | undefined, number>([
    [urgent, 2],
    [later, -1],
  ]);
  await alone(
    {
      queueSettings: ({ agentUid }) => ({
        agent: { ...DEFAULT_QUEUE_SETTINGS, priority: priorities.get(agentUid) ?? 0 },
      }),
    },
    async (own) => {
      const worker = await own.worker({ slots: 1 });
      const waiting = async (agentUid: string, minutes: number) => {
        const run = await own.run(caller, { agentUid });
        await own.database.sql.query(
          "UPDATE executions SET queued_at = clock_timestamp() - $2 * interval '1 minute' WHERE run_uid = $1",
          [run.uid, minutes],
        );
        return run.uid;
      };
      const [fourth, last, third, second, first] = [
        await waiting(later, 9),
        await waiting(later, 1),
        await waiting(newUid(), 7),
        await waiting(urgent, 0),
        await waiting(newUid(), 11),
      ];
      const order = [];
      for (let n = 0; n < 5; n++) {
        const execution = await acceptExecution(own, worker);
        order.push(execution.assignment.job.run.runUid);
        await execution.complete("DONE");
      }
      expect(order).toEqual([first, second, third, fourth, last]);
    },
  );
});

test("a paused scope is not claimed, is the reason for waiting, and continues when the pause ends", async () => {
  const caller = aCaller();
  let version = 1;
  const settings = { isPaused: true };
  await alone({ queueSettings: () => ({ team: { ...DEFAULT_QUEUE_SETTINGS, ...settings, version } }) }, async (own) => {
    const run = await own.run(caller);
    const worker = await own.worker();
    expect(await own.claim(worker)).toEqual([]);
    expect(await own.life.getQueueStatus(caller, run.uid)).toMatchObject({
      reason: "paused",
      message: "The team is paused. Resume it to start new runs.",
    });
    [settings.isPaused, version] = [false, 2];
    await own.run(caller);
    [settings.isPaused, version] = [true, 1]; // a delayed response with older settings
    await own.run(caller);
    expect(await own.claim(worker, 3)).toHaveLength(3);
  });
});

test("a worker never gets more executions than it registered slots, whatever number it reports as free", async () => {
  await alone({ poolSize: 16 }, async (own) => {
    const caller = aCaller();
    await own.life.createRuns(
      caller,
      Array.from({ length: 30 }, () => aRun(caller)),
    );
    const worker = await own.worker({ slots: 3 });
    const offers = (await Promise.all(Array.from({ length: 8 }, () => own.claim(worker, 9)))).flat();
    expect(offers).toHaveLength(3);
    const { assignments } = await own.life.worker.accept(worker.session, offers);
    const [first] = assignments.map((assignment) => new ActiveExecution(own, worker.session, assignment));
    await own.life.cancelRun(caller, { runUid: first!.assignment.job.run.runUid, tree: false });
    expect(await own.claim(worker, 9)).toEqual([]); // its sandbox still exists
    await first!.complete("CANCELLED");
    expect(await own.claim(worker, 9)).toHaveLength(1);
  });
});

test("a run that needs an image goes to a worker that has it, or that accepts any", async () => {
  await alone({}, async (own) => {
    const caller = aCaller();
    const [plain, special] = [await own.run(caller), await own.run(caller, { config: { image: "node:24" } })];
    const taken = async (worker: Awaited<ReturnType<TestPlatform["worker"]>>) => {
      const { assignments } = await own.life.worker.accept(worker.session, await own.claim(worker, 9));
      return assignments.map(({ job }) => job.run.runUid);
    };
    expect(await taken(await own.worker({ images: ["python:3"] }))).toEqual([plain.uid]);
    expect(await own.life.getQueueStatus(caller, special.uid)).toMatchObject({
      reason: "no_matching_worker",
      message: 'No connected worker offers the harness "oz" and the image "node:24".',
    });
    expect(await taken(await own.worker({ images: ["python:3", "node:24"] }))).toEqual([special.uid]);
    const another = await own.run(caller, { config: { image: "node:24" } });
    expect(await taken(await own.worker())).toEqual([another.uid]);
  });
});

test("a run whose platform.arch no worker has is queued with that reason, until a worker has it", async () => {
  await alone({}, async (own) => {
    const caller = aCaller();
    const run = await own.run(caller, { config: { arch: "aarch64" } });
    const taken = async (worker: Awaited<ReturnType<TestPlatform["worker"]>>) => {
      const { assignments } = await own.life.worker.accept(worker.session, await own.claim(worker, 9));
      return assignments.map(({ job }) => job.run.runUid);
    };
    expect(await taken(await own.worker({ arch: "x86_64" }))).toEqual([]);
    expect(await own.life.getQueueStatus(caller, run.uid)).toMatchObject({
      reason: "no_matching_worker",
      message: 'No connected worker offers the harness "oz" and the architecture "aarch64".',
    });
    expect(await taken(await own.worker({ arch: "aarch64" }))).toEqual([run.uid]);
    const another = await own.run(caller, { config: { arch: "aarch64" } });
    // Earlier releases of the worker do not report their architecture.
    expect(await taken(await own.worker())).toEqual([another.uid]);
  });
});

test("the position of a run counts every run of its owner that is served first, whatever its agent, and no others", async () => {
  const [priority, capped] = [newUid(), newUid()];
  const settings = { [priority]: { priority: 1 }, [capped]: { isPaused: true } };
  await alone(
    { queueSettings: ({ agentUid = "" }) => ({ agent: { ...DEFAULT_QUEUE_SETTINGS, ...settings[agentUid] } }) },
    async (own) => {
      const caller = aCaller();
      const worker = await own.worker({ images: ["python:3"] });
      const parent = await own.run(caller);
      await startExecution(own, worker);
      const made = [
        await own.run(caller, { agentUid: newUid() }),
        await own.run(caller),
        await own.run(caller, { agentUid: newUid() }),
        await own.run(caller),
        await own.run(caller, { parentRunUid: parent.uid, agentUid: newUid() }),
        await own.run(caller, { agentUid: priority }),
      ];
      await own.run(caller, { agentUid: capped });
      await own.run(caller, { config: { image: "node:24" } });
      await own.run(aCaller());
      const positions = await Promise.all(
        made.map(async ({ uid }) => [uid, (await own.life.getQueueStatus(caller, uid)).position] as const),
      );
      const served: string[] = [];
      while (served.length < made.length) {
        await own.claim(worker);
        for (const { uid } of made)
          if (!served.includes(uid) && (await own.getRun(caller, uid)).state === "PENDING") served.push(uid);
      }
      expect(new Map(positions)).toEqual(new Map(served.map((uid, n) => [uid, n + 1])));
    },
  );
});

test("descendants are served before roots of the same team", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const root = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await platform.run(caller);
  const child = await platform.run(caller, { parentRunUid: root.uid, agentUid: newUid() });
  expect(child).toMatchObject({ depth: 1, rootRunUid: root.uid, source: "ORCHESTRATION" });
  const next = await acceptExecution(platform, worker);
  expect(next.assignment.job.run.runUid).toBe(child.uid);
  await execution.complete("DONE");
});

test("a worker is offered only the runs that it serves", async () => {
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
    expect((await taken(platformWorker)).concat(await taken(platformWorker)).toSorted()).toEqual(
      [unrouted.uid, user.uid].toSorted(),
    );
    expect(await taken(await own.worker({ harness: "codex" }))).toEqual([codex.uid]);
  });
});

test("a waiting poll returns when a run is queued, and ends when its worker leaves", async () => {
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

test("a draining worker gets no offers", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  await platform.run(caller);
  await platform.life.worker.heartbeat(worker.session, { state: "DRAINING", freeSlots: 1, leases: [] });
  const lease = async () =>
    platform.life.worker.lease(
      await platform.life.worker.authenticate(worker.token),
      1,
      20_000,
      new AbortController().signal,
    );
  expect(await lease()).toEqual([]);
  await platform.life.worker.heartbeat(worker.session, { state: "READY", freeSlots: 1, leases: [] });
  expect(await lease()).toHaveLength(1);
});

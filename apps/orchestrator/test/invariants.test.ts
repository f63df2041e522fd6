import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { eventually, memoryLog, seededRandom } from "@millwright/testing";
import { DEFAULT_TIMINGS, scaleTimings } from "../src/runs/domain/timings.ts";
import type { WorkerSession } from "../src/runs/domain/worker-session.ts";
import { ActiveExecution, acceptExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const MAX = { team: 6, agent: 3, factory: 5 };
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: 16, limits: MAX });
});
afterAll(() => platform.close());

/** Selects violations of the invariants between runs, executions, leases, capacity, waits and streams. */
const VIOLATIONS = `
  SELECT 'capacity ' || c.scope || ' counts ' || c.in_use || ', leases are ' || n.leases AS violation
    FROM capacity c CROSS JOIN LATERAL (
      SELECT count(*) AS leases FROM leases l JOIN runs r ON r.uid = l.run_uid JOIN executions x ON x.id = l.execution_id AND NOT x.is_local
       WHERE CASE c.scope WHEN 'agent' THEN r.agent_uid = c.uid WHEN 'factory' THEN r.factory_uid = c.uid ELSE r.owner_uid = c.uid END) n
   WHERE c.in_use <> n.leases OR c.in_use > c.in_use_max
  UNION ALL
  SELECT 'execution ' || x.state || CASE WHEN l.execution_id IS NULL THEN ' without a lease' ELSE ' with a lease' END
    FROM executions x LEFT JOIN leases l ON l.execution_id = x.id AND l.attempt = x.attempt AND l.accepted = (x.state <> 'OFFERED')
   WHERE (x.state IN ('OFFERED', 'CLAIMED', 'RUNNING', 'STOPPING', 'DEBUG')) <> (l.execution_id IS NOT NULL)
  UNION ALL
  SELECT 'run ' || r.state || ' with execution ' || x.state || CASE WHEN w.run_uid IS NULL THEN '' ELSE ' and a wait' END
    FROM runs r
    JOIN LATERAL (SELECT * FROM executions e WHERE e.run_uid = r.uid ORDER BY e.seq DESC LIMIT 1) x ON true
    LEFT JOIN waits w ON w.run_uid = r.uid
   WHERE NOT CASE r.state
     WHEN 'QUEUED' THEN x.state = 'QUEUED' AND w.run_uid IS NULL
     WHEN 'PENDING' THEN x.state = 'OFFERED' AND w.run_uid IS NULL
     WHEN 'CLAIMED' THEN x.state = 'CLAIMED' AND w.run_uid IS NULL
     WHEN 'INPROGRESS' THEN (x.state = 'RUNNING' AND w.run_uid IS NULL) OR (x.state = 'ENDED' AND x.outcome = 'WAITING' AND w.run_uid IS NOT NULL)
     ELSE (x.state IN ('STOPPING', 'ENDED') OR (x.state = 'DEBUG' AND r.state = 'FAILED')) AND w.run_uid IS NULL AND r.finished_at IS NOT NULL END
  UNION ALL
  SELECT 'a stored wait that has ended: ' || w.policy FROM waits w
   WHERE w.policy = 'all' AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.uid = ANY(w.run_uids) AND c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'))
      OR w.policy = 'any' AND EXISTS (
        SELECT 1 FROM runs c LEFT JOIN reported_children t ON t.parent_run_uid = w.run_uid AND t.child_run_uid = c.uid
         WHERE c.uid = ANY(w.run_uids) AND c.state NOT IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') AND coalesce(t.execution_count < c.execution_count, true))
  UNION ALL
  SELECT 'the events of a run have a gap' FROM run_streams s
   WHERE s.last_seq <> (SELECT count(*) FROM stream.run_events e WHERE e.run_uid = s.run_uid)
  UNION ALL
  SELECT 'a run is ' || r.state || ' without a cause' FROM runs r
   WHERE (r.state IN ('FAILED', 'ERROR') AND r.error_code IS NULL)
      OR (r.state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED') AND coalesce(
           (SELECT e.payload->>'reason' FROM stream.run_events e WHERE e.run_uid = r.uid AND e.kind = 'run_finished' ORDER BY e.seq DESC LIMIT 1), '') = '')
  UNION ALL
  SELECT 'an execution with ' || n.claims || ' claims, ' || n.live || ' accepted leases and ' || n.intervals || ' compute intervals'
    FROM executions x CROSS JOIN LATERAL (
      SELECT (SELECT count(*) FROM stream.run_events e WHERE e.run_uid = x.run_uid AND e.kind = 'run_claimed' AND e.execution_id = x.id) AS claims,
             (SELECT count(*) FROM leases l WHERE l.execution_id = x.id AND l.accepted) AS live,
             (SELECT count(*) FROM compute_intervals c WHERE c.run_uid = x.run_uid AND c.execution_id = x.id) AS intervals) n
   WHERE NOT x.is_local AND n.claims <> n.live + n.intervals
  UNION ALL
  SELECT 'a follow-up without a fate' FROM messages m JOIN runs r ON r.uid = m.run_uid
   WHERE m.kind = 'followup' AND m.delivered_at IS NULL AND NOT m.undeliverable AND r.state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')
     AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.id = m.execution_id AND x.state IN ('STOPPING', 'DEBUG'))`;

async function deadlocks({ database }: TestPlatform): Promise<number> {
  const { rows } = await database.sql.query<{ deadlocks: number }>(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return rows[0]!.deadlocks;
}

test("under concurrent random operations rows stay consistent, nothing deadlocks, and every run can be finished", async () => {
  const seed = 20_260_101;
  const next = seededRandom(seed).below;
  const caller = aCaller();
  const [agents, factoryUid] = [[newUid(), newUid(), newUid()], newUid()];
  const workers = await Promise.all(Array.from({ length: 4 }, () => platform.worker({ slots: 3 })));
  const runs: string[] = [];
  const executions: ActiveExecution[] = [];
  const pick = <T>(from: readonly T[]): T | undefined => from[next(from.length)];
  const quietly = async (act: () => unknown): Promise<void> => {
    try {
      await act();
    } catch (error) {
      if (!isDomainError(error)) throw error;
    }
  };
  const take = async () => {
    const worker = pick(workers)!;
    const { assignments } = await platform.life.worker.accept(worker.session, await platform.claim(worker, 2));
    executions.push(...assignments.map((assignment) => new ActiveExecution(platform, worker.session, assignment)));
  };
  const create = async (parentRunUid?: string) => {
    const run = await platform.run(caller, {
      agentUid: pick(agents)!,
      factoryUid,
      parentRunUid,
    });
    runs.push(run.uid);
  };
  const end = async (execution: ActiveExecution | undefined) => {
    if (!execution) return;
    executions.splice(executions.indexOf(execution), 1);
    const outcome = (["DONE", "FAILED", "BLOCKED", "WAITING", "WAITING", "ERROR"] as const)[next(6)]!;
    const policy = next(2) ? ("all" as const) : ("any" as const);
    if (next(3)) await execution.start();
    await execution.complete(outcome, { waitFor: { policy, runUids: [] } });
  };
  const executionsOf = ({ session }: { readonly session: WorkerSession }) =>
    executions.filter((execution) => execution.session.uid === session.uid);
  const endAll = async (worker: (typeof workers)[number]) => {
    const ended = executionsOf(worker);
    for (const execution of ended) executions.splice(executions.indexOf(execution), 1);
    const completions = ended.map(({ ref, clientSeq }) => ({
      ...ref,
      outcome: (["DONE", "WAITING", "ERROR"] as const)[next(3)]!,
      lastClientSeq: clientSeq,
      waitFor: { policy: "all" as const, runUids: [] },
    }));
    await platform.life.worker.complete(worker.session, completions);
  };
  const heartbeat = (worker: (typeof workers)[number]) =>
    platform.life.worker.heartbeat(worker.session, {
      state: "READY",
      freeSlots: 0,
      leases: executionsOf(worker).map(({ ref }) => ({ ...ref, phase: "RUNNING", ackedDirectiveSeq: 0 })),
    });
  const lose = async (execution: ActiveExecution | undefined) => {
    if (!execution) return;
    await platform.expire(execution.ref.executionId);
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
  };
  const follow = (runUid: string | undefined) =>
    runUid
      ? platform.life.createFollowup(caller, {
          target: { runUid },
          message: "More.",
          mode: "normal",
          attachmentUids: [],
        })
      : undefined;
  const cancel = (runUid: string | undefined) =>
    runUid ? platform.life.cancelRun(caller, { runUid, tree: next(2) === 1 }) : undefined;
  const acts = [
    () => create(),
    () => create(pick(runs)),
    () => create(pick(runs)),
    take,
    take,
    take,
    () => end(pick(executions)),
    () => endAll(pick(workers)!),
    () => pick(executions)?.start(),
    () => heartbeat(pick(workers)!),
    () => lose(pick(executions)),
    () => follow(pick(runs)),
    () => cancel(pick(runs)),
  ];
  for (let round = 0; round < 40; round++) await Promise.all(Array.from({ length: 8 }, () => quietly(pick(acts)!)));
  const violations = async () =>
    (await platform.database.sql.query<{ violation: string }>(VIOLATIONS)).rows.map(({ violation }) => violation);
  expect({ seed, violations: await violations() }).toEqual({ seed, violations: [] });

  // All workers are gone and their leases expire. Then one worker finishes the remaining runs.
  await platform.database.sql.query(
    "UPDATE leases SET expires_at = 'epoch', fence_at = CASE WHEN fence_at IS NOT NULL THEN now() END",
  );
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  const last = await platform.worker({ slots: 9 });
  for (let n = 0; n < 500; n++) {
    const { assignments } = await platform.life.worker.accept(last.session, await platform.claim(last, 9));
    if (assignments.length === 0) break;
    await Promise.all(
      assignments.map(async (assignment) =>
        (await new ActiveExecution(platform, last.session, assignment).start()).complete("DONE"),
      ),
    );
  }
  expect({ seed, violations: await violations() }).toEqual({ seed, violations: [] });
  const { rows } = await platform.database.sql.query<{ n: number }>(
    "SELECT count(*) AS n FROM runs WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')",
  );
  expect({ seed, live: rows[0]!.n, runs: runs.length > 20 }).toEqual({ seed, live: 0, runs: true });
  expect(await deadlocks(platform)).toBe(0);
});

test("heartbeats of many runs lock leases in the order of acceptances and completions", async () => {
  const own = await testPlatform({ poolSize: 16 });
  const caller = aCaller();
  const worker = await own.worker({ teamUid: teamOf(caller), slots: 30 });
  for (let round = 0; round < 4; round++) {
    await Promise.all(Array.from({ length: 30 }, () => own.run(caller)));
    const offers = await own.claim(worker, 30);
    const leases = offers.map(({ executionId, attempt }) => ({ executionId, attempt }));
    const heartbeatsDuring = async (change: Promise<unknown>) => {
      const settled = new AbortController();
      const repeat = async () => {
        while (!settled.signal.aborted)
          await own.life.worker.heartbeat(worker.session, {
            state: "READY",
            freeSlots: 0,
            leases: leases.map((lease) => ({ ...lease, phase: "RUNNING", ackedDirectiveSeq: 0 })),
          });
      };
      await Promise.all([change.finally(() => settled.abort()), repeat(), repeat(), repeat()]);
    };
    await heartbeatsDuring(own.life.worker.accept(worker.session, offers));
    const completions = leases.map((lease) => ({ ...lease, outcome: "DONE" as const, lastClientSeq: 0 }));
    await heartbeatsDuring(own.life.worker.complete(worker.session, completions));
  }
  expect(await deadlocks(own)).toBe(0);
  await own.close();
});

test("the loops assign a silent worker's run to another attempt, and queue an unanswered offer again", async () => {
  const timings = { ...scaleTimings(30), offerTtlMs: 500, leaseTtlMs: 1500 };
  const own = await testPlatform({ timings, log: memoryLog() });
  own.life.start();
  const caller = aCaller();
  const [first, second] = [
    await own.worker({ teamUid: teamOf(caller) }),
    await own.worker({ teamUid: teamOf(caller) }),
  ];
  const run = await own.run(caller);
  await own.claim(first); // offered, but never accepted
  await eventually(async () => (await own.getRun(caller, run.uid)).state === "QUEUED");
  const old = await (await acceptExecution(own, first)).start();
  await eventually(async () => (await own.kinds(run.uid)).includes("worker_lost"));
  const next = await (await acceptExecution(own, second)).start();
  expect(next.ref.attempt).toBeGreaterThan(old.ref.attempt);
  expect((await own.getRun(caller, run.uid)).state).toBe("INPROGRESS");
  expect(DEFAULT_TIMINGS.leaseTtlMs + DEFAULT_TIMINGS.reaperTickMs).toBeLessThanOrEqual(60_000);
  await own.close();
});

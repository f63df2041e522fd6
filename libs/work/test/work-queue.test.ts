import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { currentScope, inScope, NO_TRACER, type TraceContext } from "@millwright/telemetry";
import { eventually, memoryLog, memoryTracer, missingTables, pagesRead, testDatabase } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { enqueueAllWork, enqueueWork, WORK_TABLES_SQL, WorkQueue } from "@millwright/work";
import type { WorkBatchHandler, WorkHandler, WorkQueueDeps } from "@millwright/work";
import { claim, finish, type WorkItem } from "../src/work-items.ts";

let t: TestDatabase;
let log: ReturnType<typeof memoryLog>;
beforeEach(async () => {
  t = await testDatabase();
  await t.database.pool.query(WORK_TABLES_SQL);
  log = memoryLog();
});
afterEach(() => t.close());

const aQueue = (call: WorkHandler, more: Partial<WorkQueueDeps> = {}): WorkQueue =>
  new WorkQueue({ database: t.database, clock: systemClock, log, handlers: { call }, ...more });

const enqueue = (...keys: string[]): Promise<void> =>
  t.database.transaction(async (tx) => {
    for (const key of keys) await enqueueWork(tx, { kind: "call", key, payload: { key } });
  });

const states = async (): Promise<string[]> =>
  (
    await t.database.sql.query<{ line: string }>(
      "SELECT concat_ws(' ', key, state, attempts) AS line FROM stream.work_items ORDER BY key",
    )
  ).rows.map((r) => r.line);

const makeDue = (): Promise<unknown> =>
  t.database.sql.query("UPDATE stream.work_items SET due_at = date_trunc('milliseconds', now()) WHERE state <> 'done'");

test("the migration text is what missingTables compares", async () => {
  expect(await missingTables(t.database.sql, WORK_TABLES_SQL)).toEqual([]);
});

test("a claim and a completion read few pages of a queue that has become long since PostgreSQL planned them", async () => {
  const database = Database.open(t.url, { max: 1 });
  try {
    const { sql } = database;
    const unknown = { id: 0, lease: newUid() } as unknown as WorkItem;
    await sql.query("ALTER TABLE stream.work_items SET (autovacuum_enabled = off)");
    for (let n = 0; n < 10; n++) {
      await claim(sql, ["call"], 4, 30); // from the sixth time on, the plan is cached
      await finish(sql, [unknown]);
    }
    await sql.query(
      "INSERT INTO stream.work_items (kind, key, payload, due_at, created_at) SELECT 'call', n, '{}', date_trunc('milliseconds', now()), now() FROM generate_series(1, 5000) n",
    );
    let items: WorkItem[] = [];
    expect(await pagesRead(sql, async () => (items = await claim(sql, ["call"], 4, 30)))).toBeLessThan(150);
    expect(await pagesRead(sql, async () => expect(await finish(sql, items)).toBe(4))).toBeLessThan(100);
  } finally {
    await database.close();
  }
});

test("separate kinds that do not end use no slot of the other kinds", async () => {
  await t.database.transaction(async (tx) => {
    for (let n = 0; n < 6; n += 1) await enqueueWork(tx, { kind: "slow", key: `s${n}`, payload: null });
    await enqueueWork(tx, { kind: "call", key: "c", payload: null });
  });
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const [called, slow] = [[] as string[], [] as string[]];
  const handlers = {
    call: async ({ key }: { key: string }) => void called.push(key),
    slow: async ({ key }: { key: string }) => (slow.push(key), released),
  };
  const queue = aQueue(handlers.call, { handlers, concurrency: 1, separate: { slow: 2 } });
  const drained = queue.drain();
  await eventually(() => called.length === 1 && slow.length === 2);
  release();
  await drained;
  expect([called, slow.toSorted()]).toEqual([["c"], ["s0", "s1", "s2", "s3", "s4", "s5"]]);
});

describe("an item of work", () => {
  test("exists only when its transaction commits, and once per key", async () => {
    await expect(
      t.database.transaction(async (tx) => {
        await enqueueWork(tx, { kind: "call", key: "undone", payload: 1 });
        throw new Error("the use case failed");
      }),
    ).rejects.toThrow("the use case failed");
    const work = { kind: "call", key: "a", payload: { list: [1], text: "ü" } };
    expect([
      await enqueueWork(t.database.sql, work),
      await enqueueWork(t.database.sql, { ...work, payload: 2 }),
    ]).toEqual(["enqueued", "duplicate"]);
    const seen: unknown[] = [];
    await aQueue(async (item) => void seen.push(item.payload)).drain();
    expect(seen).toEqual([{ list: [1], text: "ü" }]);
    expect(await states()).toEqual(["a done 1"]);
  });

  test("is the same in a batch insert, each with its own trace", async () => {
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await enqueue("known");
    await enqueueAllWork(t.database.sql, []);
    await enqueueAllWork(t.database.sql, [
      { kind: "call", key: "known", payload: "other" },
      { kind: "call", key: "a", payload: { text: "ü'\"", list: [null] }, traceparent },
      { kind: "call", key: "a", payload: "twice" },
      { kind: "call", key: "later", payload: null, runAt: new Date("2999-01-01T00:00:00.000Z") },
    ]);
    const seen: Record<string, unknown> = {};
    await aQueue(
      async ({ key, payload }) => void (seen[key] = [payload, currentScope()?.trace.traceId === "a".repeat(32)]),
    ).drain();
    expect(seen).toEqual({ known: [{ key: "known" }, false], a: [{ text: "ü'\"", list: [null] }, true] });
    expect(await states()).toEqual(["a done 1", "known done 1", "later waiting 0"]);
  });

  test("is processed as soon as its transaction has committed", async () => {
    const queue = aQueue(async () => {});
    queue.start();
    await enqueue("a");
    await eventually(async () => expect(await states()).toEqual(["a done 1"]));
    await queue.stop();
  });

  test("continues the trace of the enqueuing request, at every attempt", async () => {
    const request: TraceContext = { traceId: "a".repeat(32), spanId: "b".repeat(16), isSampled: true };
    await inScope({ trace: request, tracer: NO_TRACER, fields: {} }, () => enqueue("a"));
    const tracer = memoryTracer();
    const traces: unknown[] = [];
    const queue = aQueue(
      async ({ attempts }) => {
        traces.push(currentScope()?.trace.traceId);
        if (attempts === 1)
          throw new DomainError({ kind: "unavailable", reason: "upstream_away", message: "Later.", retryable: true });
      },
      { tracer },
    );
    await queue.drain();
    await makeDue();
    await queue.drain();
    expect(traces).toEqual([request.traceId, request.traceId]);
    expect(tracer.spans).toMatchObject([
      {
        name: "work call",
        kind: "consumer",
        parent: request,
        links: [request],
        error: "upstream_away",
        isEnded: true,
      },
      { name: "work call", parent: request, isEnded: true },
    ]);
    expect(log.entries[0]?.fields).toMatchObject({ traceId: request.traceId });
  });

  test("waits until it is due", async () => {
    await enqueueWork(t.database.sql, {
      kind: "call",
      key: "later",
      payload: null,
      runAt: new Date(Date.now() + 3_600_000),
    });
    await aQueue(async () => {}).drain();
    expect(await states()).toEqual(["later waiting 0"]);
  });

  test("of a kind without a handler in this process is left alone", async () => {
    await enqueueWork(t.database.sql, { kind: "other", key: "a", payload: null });
    await aQueue(async () => {}).drain();
    expect(await states()).toEqual(["a waiting 0"]);
  });

  test("is claimed by one of many workers only", async () => {
    const runs: string[] = [];
    const replicas = Array.from({ length: 5 }, () => Database.open(t.url, { max: 3 }));
    const queues = replicas.map((database) =>
      aQueue(async (item) => void runs.push(item.key), { database, concurrency: 3 }),
    );
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    await enqueue(...keys);
    await Promise.all(queues.map((q) => q.drain()));
    expect(runs.toSorted()).toEqual(keys.toSorted());
    await Promise.all(replicas.map((d) => d.close()));
  });
});

describe("fair scheduling between teams", () => {
  const [FLOOD, OTHER] = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
  const put = (teamUid: string | undefined, ...keys: string[]) =>
    t.database.transaction(async (tx) => {
      for (const key of keys) await enqueueWork(tx, { kind: "call", key, payload: null, teamUid });
    });
  const many = (name: string, count: number) => Array.from({ length: count }, (_none, n) => `${name}${n}`);

  test("limits the delay by another team's flood to one item, and preserves each team's order", async () => {
    await put(FLOOD, ...many("flood", 50));
    await put(OTHER, "other0", "other1");
    await put(undefined, "none0");
    const seen: string[] = [];
    await aQueue(async ({ key }) => void seen.push(key), { concurrency: 1 }).drain();
    expect(seen).toHaveLength(53);
    for (const [name, by] of [
      ["other0", 3],
      ["none0", 3],
      ["other1", 6],
    ] as const)
      expect(seen.indexOf(name)).toBeLessThan(by);
    expect(seen.filter((key) => key.startsWith("flood"))).toEqual(many("flood", 50));
  });

  test("counts running items of a team, so its next item waits for those of others", async () => {
    await put(FLOOD, ...many("flood", 4));
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const queue = aQueue(({ key }) => new Promise<void>((resolve) => void (begun.push(key), ends.set(key, resolve))), {
      concurrency: 2,
    });
    queue.start();
    await eventually(() => begun.length === 2);
    await put(OTHER, "other0");
    ends.get("flood0")!();
    await eventually(() => begun.length === 3);
    expect(begun).toEqual(["flood0", "flood1", "other0"]);
    const stopped = queue.stop();
    for (const end of ends.values()) end();
    await stopped;
  });

  test("a long queue of one team does not hide other teams", async () => {
    await t.database.sql.query(
      "INSERT INTO stream.work_items (kind, key, team_uid, payload, due_at, created_at) SELECT 'call', 'k' || n, $1, 'null', now(), now() FROM generate_series(1, 5000) n",
      [FLOOD],
    );
    await t.database.sql.query("ANALYZE stream.work_items");
    await put(OTHER, "other0");
    const items = await claim(t.database.sql, ["call"], 2, 30);
    expect(new Set(items.map(({ teamUid }) => teamUid))).toEqual(new Set([FLOOD, OTHER]));
  });
});

describe("a failing item", () => {
  test("is retried with the configured pauses, then dead-lettered, and restarts when replayed", async () => {
    let isBroken = true;
    const queue = aQueue(
      async () => {
        if (isBroken) throw new Error("upstream down");
      },
      { retrySchedule: [60, 600] },
    );
    await enqueue("a");
    await queue.drain();
    expect(await states()).toEqual(["a waiting 1"]);
    const { rows } = await t.database.sql.query(
      "SELECT due_at > now() + interval '55 seconds' AS late, due_at < now() + interval '76 seconds' AS soon, last_error FROM stream.work_items",
    );
    expect(rows).toEqual([{ late: true, soon: true, last_error: "Error: upstream down" }]);
    for (const state of ["a waiting 2", "a dead_lettered 3", "a dead_lettered 3"]) {
      await makeDue();
      await queue.drain();
      expect(await states()).toEqual([state]);
    }
    expect(log.entries.filter((e) => e.level === "error")).toHaveLength(1);
    expect(await queue.counts()).toEqual([{ kind: "call", state: "dead_lettered", count: 1, overdueSeconds: 0 }]);
    isBroken = false;
    expect([await queue.replay("other"), await queue.replay()]).toEqual([0, 1]);
    await queue.drain();
    expect(await states()).toEqual(["a done 1"]);
  });

  test("with a permanent error is dead-lettered at once", async () => {
    const queue = aQueue(() =>
      Promise.reject(new DomainError({ kind: "not_found", reason: "run_not_found", message: "No such run." })),
    );
    await enqueue("a");
    await queue.drain();
    expect(await states()).toEqual(["a dead_lettered 1"]);
  });

  test("does not block the others", async () => {
    await enqueue("bad", "good");
    await aQueue(async (item) => {
      if (item.key === "bad") throw new Error("bad");
    }).drain();
    expect(await states()).toEqual(["bad waiting 1", "good done 1"]);
  });
});

describe("items that are processed in batches", () => {
  const batchQueue = (handle: WorkBatchHandler, sizeMax = 3) =>
    aQueue(async () => {}, { handlers: {}, batches: { call: { sizeMax, concurrency: 1, handle } } });
  const keysOf = (items: readonly { readonly key: string }[]) => items.map(({ key }) => key).toSorted();

  test("are passed to the handler in one batch, up to the size of a batch, and completed in its transaction", async () => {
    await enqueue("a", "b", "c", "d");
    const seen: string[][] = [];
    await batchQueue(async (items, context) => {
      seen.push(keysOf(items));
      await t.database.transaction((tx) => context.finish(tx));
    }).drain();
    expect([seen, await states()]).toEqual([
      [["a", "b", "c"], ["d"]],
      ["a done 1", "b done 1", "c done 1", "d done 1"],
    ]);
  });

  test("are completed although one of them fails, and only that one is dead-lettered", async () => {
    await enqueue("a", "b", "bad", "c", "d");
    await batchQueue(async (items) => {
      if (items.some(({ key }) => key === "bad"))
        throw new DomainError({ kind: "invalid_argument", reason: "bad", message: "Bad." });
    }, 10).drain();
    expect(await states()).toEqual(["a done 1", "b done 1", "bad dead_lettered 1", "c done 1", "d done 1"]);
  });

  test("wait as a batch after a transient failure, and are then processed one by one", async () => {
    await enqueue("a", "b", "c");
    const seen: string[][] = [];
    const queue = batchQueue(async (items) => {
      seen.push(keysOf(items));
      if (items.length > 1 || items[0]!.key === "b")
        throw new DomainError({ kind: "unavailable", reason: "upstream_away", message: "Later.", retryable: true });
    });
    await queue.drain();
    expect(await states()).toEqual(["a waiting 1", "b waiting 1", "c waiting 1"]);
    await makeDue();
    await queue.drain();
    expect([seen[0], seen.slice(1).flat().toSorted()]).toEqual([
      ["a", "b", "c"],
      ["a", "b", "c"],
    ]);
    expect(await states()).toEqual(["a done 2", "b waiting 2", "c done 2"]);
  });

  test("are completed without those whose claim was lost", async () => {
    await enqueue("a", "b");
    let effects: string[] = [];
    await batchQueue(async (items, context) => {
      if (items.length === 2)
        await t.database.sql.query("UPDATE stream.work_items SET lease = gen_random_uuid() WHERE key = 'a'");
      await t.database.transaction((tx) => context.finish(tx));
      effects = [...effects, ...keysOf(items)];
    }).drain();
    expect([effects, await states()]).toEqual([["b"], ["a running 1", "b done 1"]]);
  });
});

describe("a claim", () => {
  test("of a dead process is taken over when its lease ends, and the dead process can complete nothing", async () => {
    await enqueue("a");
    const { promise: thaw, resolve: letGo } = aSignal();
    const { promise: hasBegun, resolve: begun } = aSignal();
    const finishing: boolean[] = [];
    const frozen = aQueue(
      async (_, context) => {
        begun();
        await thaw;
        finishing.push(
          await t.database
            .transaction((tx) => context.finish(tx))
            .then(
              () => true,
              () => false,
            ),
        );
      },
      { leaseSeconds: 300 },
    ).drain();
    await hasBegun;
    await aQueue(async () => {}).drain();
    expect(await states()).toEqual(["a running 1"]); // not before the lease ends
    await makeDue();
    await aQueue(async () => {}).drain();
    letGo();
    await frozen;
    expect([finishing, await states()]).toEqual([[false], ["a done 2"]]);
  });

  test("is renewed while its handler works, and its handler is aborted when it is lost", async () => {
    await enqueue("a");
    let reason: unknown;
    const done = aQueue(
      async (_, { signal }) => {
        const before = await due();
        await eventually(async () => expect(await due()).toBeGreaterThan(before));
        await t.database.sql.query("UPDATE stream.work_items SET lease = gen_random_uuid()");
        await eventually(() => signal.aborted);
        reason = signal.reason;
      },
      { leaseSeconds: 1 },
    ).drain();
    await eventually(() => reason !== undefined);
    expect(String(reason)).toContain("lost");
    await t.database.sql.query("UPDATE stream.work_items SET state = 'done', lease = NULL");
    await done;
  });

  test("that kills its process at every attempt ends dead-lettered", async () => {
    await enqueue("poison");
    await t.database.sql.query(
      "UPDATE stream.work_items SET state = 'running', attempts = 3, lease = gen_random_uuid()",
    );
    await aQueue(async () => {}, { retrySchedule: [0, 0] }).drain();
    expect(await states()).toEqual(["poison dead_lettered 4"]);
  });

  test("is returned by a process that stops, without counting an attempt", async () => {
    await enqueue("a");
    const { promise: hasBegun, resolve: begun } = aSignal();
    const queue = aQueue((_, { signal }) => {
      begun();
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    });
    queue.start();
    await hasBegun;
    await queue.stop();
    expect(await states()).toEqual(["a waiting 0"]);
  });

  test("can be completed in the handler's own transaction", async () => {
    await t.database.pool.query("CREATE TABLE effects (key text)");
    await enqueue("a");
    await aQueue((item, context) =>
      t.database.transaction(async (tx) => {
        await tx.query("INSERT INTO effects VALUES ($1)", [item.key]);
        await context.finish(tx);
      }),
    ).drain();
    expect([await states(), (await t.database.sql.query("SELECT * FROM effects")).rowCount]).toEqual([["a done 1"], 1]);
  });
});

const due = async (): Promise<number> =>
  (await t.database.sql.query<{ due: Date }>("SELECT due_at AS due FROM stream.work_items")).rows[0]?.due.getTime() ??
  0;

function aSignal(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

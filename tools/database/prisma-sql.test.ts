import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { PrismaPg } from "@prisma/adapter-pg";
import { systemClock } from "@millwright/clock";
import { prismaSql } from "@millwright/database";
import type { PrismaRaw, Sql } from "@millwright/database";
import { appendEvents, EVENT_TABLES_SQL, EventLog } from "@millwright/events";
import { memoryLog, testDatabase } from "@millwright/testing";
import { enqueueWork, WORK_TABLES_SQL, WorkQueue } from "@millwright/work";

type Client = PrismaRaw & {
  $transaction<T>(f: (tx: PrismaRaw) => Promise<T>): Promise<T>;
  $disconnect(): Promise<void>;
};

/** Returns the generated client of any app, because only its raw queries are used. */
async function generatedClient(url: string): Promise<Client> {
  const paths = readdirSync("apps").map((app) => join(process.cwd(), "apps", app, "src/gen/prisma/client.ts"));
  const path = paths.find(existsSync) ?? "no app has a generated Prisma client: npm run generate";
  const { PrismaClient } = (await import(path)) as { PrismaClient: new (options: object) => Client };
  return new PrismaClient({ adapter: new PrismaPg(url) });
}

test("events and work written in a Prisma transaction commit and vanish with it", async () => {
  const t = await testDatabase();
  await t.database.pool.query(EVENT_TABLES_SQL + WORK_TABLES_SQL);
  const prisma = await generatedClient(t.url);
  const write = async (sql: Sql, key: string) => {
    const base = {
      type: "millwright.task.created.v1",
      entity: "task",
      entityVersion: 3,
      actor: { type: "user", uid: "u" },
      requestId: "r",
    };
    const teamUid = "0199a000-0000-7000-8000-000000000001";
    await appendEvents(sql, [
      {
        ...base,
        entityUid: key,
        teamUid,
        payload: { text: "ü'", list: [1] },
        occurredAt: new Date("2026-01-02T03:04:05.678Z"),
      },
      { ...base, entityUid: key, payload: {} },
    ]);
    return enqueueWork(sql, { kind: "call", key, payload: { key }, teamUid, runAt: new Date(0) });
  };
  expect(await prisma.$transaction((tx) => write(prismaSql(tx), "kept"))).toBe("enqueued");
  const undone = prisma.$transaction(async (tx) => {
    await write(prismaSql(tx), "undone");
    throw new Error("the use case failed");
  });
  await expect(undone).rejects.toThrow("the use case failed");
  expect(await prisma.$transaction((tx) => enqueueWork(prismaSql(tx), { kind: "call", key: "kept", payload: 1 }))).toBe(
    "duplicate",
  );

  const log = new EventLog({ database: t.database, clock: systemClock, log: memoryLog() });
  const { events } = await log.read({ after: 0, limit: 10 });
  expect(events.map((e) => [e.position, e.entityUid, e.payload])).toEqual([
    [1, "kept", { text: "ü'", list: [1] }],
    [2, "kept", {}],
  ]);
  expect(events[0]?.occurredAt).toEqual(new Date("2026-01-02T03:04:05.678Z"));
  const done: unknown[] = [];
  await new WorkQueue({
    database: t.database,
    clock: systemClock,
    log: memoryLog(),
    handlers: { call: async (item) => void done.push(item.payload) },
  }).drain();
  expect(done).toEqual([{ key: "kept" }]);

  const { rows, rowCount } = await prismaSql(prisma).query(
    "SELECT 12::int8 AS n, now() AS at, '{\"a\":1}'::jsonb AS json",
  );
  expect([rows, rowCount]).toEqual([[{ n: 12, at: expect.any(Date), json: { a: 1 } }], 1]);
  await prisma.$disconnect();
  await t.close();
});

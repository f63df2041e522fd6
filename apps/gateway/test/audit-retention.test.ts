import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { migrationsDir } from "../src/compose.ts";
import { pruneAudit } from "../src/store/audit-store.ts";

const NOW = new Date("2026-11-27T12:00:00Z");

let db: TestDatabase;
beforeEach(async () => void (db = await testDatabase(migrationsDir)));
afterEach(() => db.close());

async function anEntry(occurredAt: string): Promise<string> {
  const uid = newUid();
  await db.database.sql.query(
    `INSERT INTO audit_log (uid, source, type, entity, entity_uid, actor_type, actor_uid, request_id, payload, occurred_at)
     VALUES ($1, 'gateway', 't', 'team', 'x', 'user', 'u', 'r', '{}', $2)`,
    [uid, occurredAt],
  );
  return uid;
}

const uids = async () =>
  (await db.database.sql.query<{ uid: string }>("SELECT uid FROM audit_log ORDER BY uid")).rows.map(({ uid }) => uid);

test("deletes entries that are older than the number of days", async () => {
  await anEntry("2026-10-27T11:59:59Z");
  const retained = await anEntry("2026-10-28T12:00:00Z");
  expect(await pruneAudit(db.database.sql, NOW, 30)).toBe(false);
  expect(await uids()).toEqual([retained]);
});

test("retains everything with 0 days", async () => {
  const old = await anEntry("1999-01-01T00:00:00Z");
  expect(await pruneAudit(db.database.sql, NOW, 0)).toBe(false);
  expect(await uids()).toEqual([old]);
});

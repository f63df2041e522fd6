import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { IdempotentRequest } from "@millwright/idempotency";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { Vault } from "@millwright/vault";
import { migrationsDir } from "../src/compose.ts";
import { openResponses } from "../src/store/idempotency-store.ts";

const NOW = new Date("2026-11-20T10:00:00.000Z");
const after = (hours: number): Date => new Date(NOW.getTime() + hours * 3_600_000);
const vault = Vault.fromMasterKey(new Uint8Array(32).fill(9));
const responses = openResponses(vault);
const request = (key: string): IdempotentRequest => ({
  principalUid: "user:u",
  operation: "POST /x",
  key,
  bodyHash: "b",
});

let t: TestDatabase;
beforeEach(async () => void (t = await testDatabase(migrationsDir)));
afterEach(() => t.close());

/** The statements of release 0.1.0. */
const storeAsBefore = async (key: string, response: unknown, now: Date): Promise<boolean> => {
  const { rowCount } = await t.database.sql.query(
    `INSERT INTO idempotency_keys AS i (principal, operation, key, body_hash, expires_at, response) VALUES ($1, $2, $3, $4, $5::timestamptz, $7::text)
     ON CONFLICT (principal, operation, key) DO UPDATE SET body_hash = excluded.body_hash, response = excluded.response, expires_at = excluded.expires_at
       WHERE i.expires_at <= $6::timestamptz
     RETURNING key`,
    [
      ...["user:u", "POST /x", key, "b"],
      new Date(now.getTime() + 24 * 3_600_000),
      now,
      vault.seal(JSON.stringify(response), `idempotency:user:u POST /x ${key}`),
    ],
  );
  return rowCount === 1;
};
const isStoredAsBefore = async (key: string, now: Date): Promise<boolean> => {
  const { rowCount } = await t.database.sql.query(
    "SELECT body_hash, response FROM idempotency_keys WHERE principal = $1 AND operation = $2 AND key = $3 AND expires_at > $4::timestamptz",
    ["user:u", "POST /x", key, now],
  );
  return rowCount === 1;
};

test("responses of the previous release are returned, and its replicas see new ones", async () => {
  expect(await storeAsBefore("old", { n: 1 }, NOW)).toBe(true);
  expect(await responses.find(t.database.sql, request("old"), after(23))).toEqual({ n: 1 });
  expect(await responses.find(t.database.sql, request("old"), after(24))).toBeUndefined();

  await responses.storeFirst(t.database.sql, request("new"), NOW, { n: 2 });
  expect(await storeAsBefore("new", { n: 3 }, after(23))).toBe(false);
  expect(await isStoredAsBefore("new", after(23))).toBe(true);
  expect(await isStoredAsBefore("new", after(24))).toBe(false);
});

test("both releases replace an expired response", async () => {
  await responses.storeFirst(t.database.sql, request("k"), NOW, { n: 1 });
  expect(await storeAsBefore("k", { n: 2 }, after(24))).toBe(true);
  expect(await responses.find(t.database.sql, request("k"), after(47))).toEqual({ n: 2 });
  await responses.storeFirst(t.database.sql, request("k"), after(48), { n: 3 });
  expect(await isStoredAsBefore("k", after(71))).toBe(true);
  expect(await isStoredAsBefore("k", after(72))).toBe(false);
});

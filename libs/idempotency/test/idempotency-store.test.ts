import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { idempotentRequest, IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";
import { domainError, testDatabase, type TestDatabase } from "@millwright/testing";
import { Vault } from "@millwright/vault";

const NOW = new Date("2026-11-20T10:00:00.000Z");
const after = (hours: number): Date => new Date(NOW.getTime() + hours * 3_600_000);

let t: TestDatabase;
beforeEach(async () => {
  t = await testDatabase();
});
afterEach(() => t.close());

const create = (bodyHash: string, response: string): Promise<unknown> =>
  t.database.sql.query(
    `CREATE TABLE idempotency_keys (
       principal_uid text NOT NULL, operation text NOT NULL, key text NOT NULL, body_hash ${bodyHash} NOT NULL,
       response ${response} NOT NULL, created_at timestamptz(3) NOT NULL, PRIMARY KEY (principal_uid, operation, key))`,
  );
const request = (body: unknown = { n: 1 }, key = "k"): IdempotentRequest =>
  idempotentRequest("u", "create", key, body)!;
const rows = async () => (await t.database.sql.query("SELECT * FROM idempotency_keys")).rows;

describe.each([
  ["jsonb", "char(64)", "jsonb", new IdempotencyStore()],
  ["encrypted text", "text", "text", new IdempotencyStore({ vault: Vault.fromMasterKey(new Uint8Array(32).fill(7)) })],
])("with responses as %s", (_, bodyHash, response, store) => {
  beforeEach(() => create(bodyHash, response));

  const once = <T>(act: () => Promise<T>, now = NOW, of: IdempotentRequest | undefined = request()): Promise<T> =>
    t.database.transaction((tx) => store.once(tx, of, now, act));

  test("runs an action once per key, and again when the response has expired", async () => {
    expect(await once(async () => ({ id: 1 }))).toEqual({ id: 1 });
    expect(await once(async () => ({ id: 2 }), after(24))).toEqual({ id: 1 });
    expect(await once(async () => ({ id: 3 }), after(25))).toEqual({ id: 3 });
    expect(await store.find(t.database.sql, request(), after(25))).toEqual({ id: 3 });
  });

  test("runs every action without a key", async () => {
    expect(idempotentRequest("u", "create", "", {})).toBeUndefined();
    const of = undefined;
    expect(await t.database.transaction((tx) => store.once(tx, of, NOW, async () => 1))).toBe(1);
    expect(await t.database.transaction((tx) => store.once(tx, of, NOW, async () => 2))).toBe(2);
    expect(await rows()).toEqual([]);
  });

  test("rejects another body under the same key, whatever the order of its members", async () => {
    await once(async () => 1, NOW, request({ a: 1, b: 2 }));
    expect(await once(async () => 2, NOW, request({ b: 2, a: 1 }))).toBe(1);
    await expect(once(async () => 3, NOW, request({ a: 2 }))).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch", retryable: false }),
    );
  });

  test("stores nothing if the action fails", async () => {
    await expect(once(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await rows()).toEqual([]);
    expect(await once(async () => 2)).toBe(2);
  });

  test("returns one response to concurrent repetitions", async () => {
    let calls = 0;
    const responses = await Promise.all(Array.from({ length: 5 }, () => once(async () => ({ call: ++calls }))));
    expect(responses).toEqual(Array.from({ length: 5 }, () => ({ call: 1 })));
    const first = await Promise.all(
      [1, 2, 3].map((n) => store.storeFirst(t.database.sql, request({}, "other"), NOW, { n })),
    );
    expect(new Set(first.map(({ n }) => n)).size).toBe(1);
  });

  test("deletes expired responses", async () => {
    await once(async () => 1);
    await store.prune(t.database.sql, after(24));
    expect(await rows()).toHaveLength(1);
    await store.prune(t.database.sql, after(25));
    expect(await rows()).toEqual([]);
  });
});

test("encrypts responses with a vault", async () => {
  await create("text", "text");
  const store = new IdempotencyStore({ vault: Vault.fromMasterKey(new Uint8Array(32).fill(7)) });
  await store.storeFirst(t.database.sql, request(), NOW, { secret: "s3cret" });
  expect(JSON.stringify(await rows())).not.toContain("s3cret");
});

import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { newUid } from "@millwright/ids";
import { masterKeyId, Vault } from "@millwright/vault";
import { migrationsDir } from "../src/compose.ts";
import { verifyMasterKey } from "../src/identity/usecases/verify-master-key.ts";

const [KEY, OTHER] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

let db: TestDatabase;
beforeEach(async () => void (db = await testDatabase(migrationsDir)));
afterEach(() => db.close());

const verify = (masterKey: Uint8Array, secondaryMasterKey?: Uint8Array) =>
  verifyMasterKey(db.database.sql, { masterKey, secondaryMasterKey });

test("records the first key, and rejects every other key with its id", async () => {
  await verify(KEY);
  await verify(KEY);
  await expect(verify(OTHER)).rejects.toThrow(
    `The master key (${masterKeyId(OTHER)}) is not the one of this platform (${masterKeyId(KEY)})`,
  );
});

test("verifies the key with the newest secret if no key is recorded", async () => {
  const [team, secret] = [newUid(), newUid()];
  await db.database.sql.query("INSERT INTO teams (uid, name) VALUES ($1, 'works')", [team]);
  const sealed = Vault.fromMasterKey(KEY).seal("hunter2", `secret:${secret}`);
  await db.database.sql.query(
    "INSERT INTO managed_secrets (uid, team_uid, name, sealed, updated_by) VALUES ($1, $2, 'TOKEN', $3, 'somebody')",
    [secret, team, sealed],
  );
  await expect(verify(OTHER)).rejects.toThrow("Put back the original key");
  await verify(KEY);
  await expect(verify(OTHER)).rejects.toThrow("Put back the original key");
});

test("accepts the recorded key as either one during a rotation, and refuses a retired key", async () => {
  await verify(KEY);
  await verify(KEY, OTHER);
  await verify(OTHER, KEY);
  await db.database.sql.query("UPDATE master_key SET key_id = $1, retired_key_ids = ARRAY[$2]", [
    masterKeyId(OTHER),
    masterKeyId(KEY),
  ]);
  await verify(OTHER, KEY);
  await verify(OTHER);
  await expect(verify(KEY, OTHER)).rejects.toThrow(`The master key (${masterKeyId(KEY)}) was retired by a rotation`);
  await expect(verify(KEY)).rejects.toThrow("was retired by a rotation");
});

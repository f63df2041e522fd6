import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import { readConfig } from "@millwright/config";
import { readMasterKeys, serviceSettings } from "@millwright/service";
import { masterKeyId, platformWorkerKey, readKeyFile, Vault, type MasterKeys } from "@millwright/vault";
import { UsageError, type Admin, type Command } from "../command.ts";
import { withClient } from "../databases.ts";
import { dataDirectoryOf, withPlatform, type PlatformDatabases } from "../platform.ts";

type SealedColumn = { readonly table: string; readonly column: string };

/** Every column with encrypted records, by service. Rows are addressed by their record, which is unique. */
export const SEALED_COLUMNS: Readonly<Record<string, readonly SealedColumn[]>> = {
  gateway: [
    { table: "managed_secrets", column: "sealed" },
    { table: "idempotency_keys", column: "response" },
  ],
  orchestrator: [{ table: "worker_sessions", column: "key_sealed" }],
  "webhook-ingress": [
    { table: "webhooks", column: "secret_sealed" },
    { table: "team_secrets", column: "sealed" },
    { table: "code_host_webhooks", column: "secret_sealed" },
    { table: "idempotency_keys", column: "response" },
  ],
};

const BATCH = 500;

export const rotateMasterKey: Command = {
  words: "rotate-master-key",
  args: [],
  summary: "Encrypts every stored secret for the new master key, while the platform serves, and retires the old one.",
  details: [
    "MASTER_KEY or MASTER_KEY_FILE: the new key. MASTER_KEY_SECONDARY or MASTER_KEY_SECONDARY_FILE: the old one.",
    "Standalone: master.key and master.key.secondary of the data directory.",
    "Every replica must have the new key as MASTER_KEY before. Run again after an interruption, it resumes.",
    "docs/operations/secure.md describes the whole rotation.",
  ],
  async run(admin) {
    const keys = readKeys(admin.env);
    await withPlatform(admin.env, (databases) => rotate(admin, keys, databases));
  },
};

type BothKeys = { readonly masterKey: Uint8Array; readonly secondaryMasterKey: Uint8Array };

function readKeys(env: NodeJS.ProcessEnv): BothKeys {
  const { masterKey, secondaryMasterKey } = keysOf(env);
  if (!secondaryMasterKey)
    throw new UsageError("Set MASTER_KEY_SECONDARY or MASTER_KEY_SECONDARY_FILE to the old key.");
  if (masterKeyId(masterKey) === masterKeyId(secondaryMasterKey))
    throw new UsageError("MASTER_KEY and MASTER_KEY_SECONDARY are the same key.");
  return { masterKey, secondaryMasterKey };
}

function keysOf(env: NodeJS.ProcessEnv): MasterKeys {
  const isNamed = env["MASTER_KEY"] || env["MASTER_KEY_FILE"];
  const file = join(dataDirectoryOf(env), "master.key");
  if (!isNamed && existsSync(file)) {
    const secondary = `${file}.secondary`;
    return {
      masterKey: readKeyFile(file),
      ...(existsSync(secondary) && { secondaryMasterKey: readKeyFile(secondary) }),
    };
  }
  const { masterKey, masterKeyFile, secondaryMasterKey, secondaryMasterKeyFile } = serviceSettings;
  return readMasterKeys(readConfig(env, { masterKey, masterKeyFile, secondaryMasterKey, secondaryMasterKeyFile }));
}

async function rotate({ print }: Admin, keys: BothKeys, databases: PlatformDatabases): Promise<void> {
  const [current, retired] = [masterKeyId(keys.masterKey), masterKeyId(keys.secondaryMasterKey)];
  const vault = Vault.fromMasterKeys(keys);
  await withClient(databases["gateway"]!, (db) => requireKnown(db, [current, retired]));
  for (const [service, columns] of Object.entries(SEALED_COLUMNS))
    await withClient(databases[service]!, async (db) => {
      for (const column of columns) {
        const count = await rewrap(db, vault, column, current);
        print(`${service}: ${column.table}: ${count} records rewrapped`);
      }
    });
  await withClient(databases["gateway"]!, (db) => retire(db, keys));
  print(`The master key is ${current}. ${retired} is retired: remove it from MASTER_KEY_SECONDARY of every service.`);
}

/** Throws unless the platform's key is one of these. */
async function requireKnown(db: Client, ids: readonly string[]): Promise<void> {
  const { rows } = await db.query<{ keyId: string; isRetired: boolean }>(
    `SELECT key_id AS "keyId", $1 = ANY (retired_key_ids) AS "isRetired" FROM master_key`,
    [ids[0]],
  );
  const [known] = rows;
  if (!known) throw new Error("The platform has no master key yet: start it first.");
  if (known.isRetired)
    throw new Error(
      `The new key ${ids[0]} was retired by an earlier rotation. Generate another one, or swap the keys.`,
    );
  if (!ids.includes(known.keyId))
    throw new Error(
      `The platform's master key is ${known.keyId}, which is neither of the given ones (${ids.join(", ")}).`,
    );
}

/**
 * Rewraps the records of a column that are not wrapped by the current key, in batches, each in its own transaction.
 * A record that a service has changed in between is read again. Returns their number. Throws if a record was sealed
 * with a third key.
 */
async function rewrap(db: Client, vault: Vault, { table, column }: SealedColumn, keyId: string): Promise<number> {
  for (let count = 0; ;) {
    const { rows } = await db.query<{ sealed: string }>(
      `SELECT DISTINCT ${column} AS sealed
         FROM ${table}
        WHERE ${column} LIKE 'v1.%' AND split_part(${column}, '.', 2) <> $1
        LIMIT $2`,
      [keyId, BATCH],
    );
    if (rows.length === 0) return count;
    const before = rows.map(({ sealed }) => sealed);
    await db.query(
      `UPDATE ${table}
          SET ${column} = changed.after
         FROM unnest($1::text[], $2::text[]) AS changed (before, after)
        WHERE ${table}.${column} = changed.before`,
      [before, before.map((sealed) => vault.rewrap(sealed))],
    );
    count += rows.length;
  }
}

/** Records the new key, and that services which start with the old one are refused. */
async function retire(db: Client, keys: BothKeys): Promise<void> {
  const [current, retired] = [masterKeyId(keys.masterKey), masterKeyId(keys.secondaryMasterKey)];
  await db.query("BEGIN");
  await db.query(
    `UPDATE master_key
        SET key_id = $1,
            retired_key_ids = array_append(array_remove(retired_key_ids, $2), $2)`,
    [current, retired],
  );
  await db.query("DELETE FROM api_keys WHERE kind = 'worker' AND hash = $1", [
    createHash("sha256").update(platformWorkerKey(keys.secondaryMasterKey)).digest("hex"),
  ]);
  await db.query("COMMIT");
}

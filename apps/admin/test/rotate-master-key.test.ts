import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { masterKeyId, platformWorkerKey, Vault } from "@millwright/vault";
import { SEALED_COLUMNS } from "../src/commands/rotate-master-key.ts";
import { migrationsOf, servicesWithDatabase } from "../src/platform.ts";
import { admin, namedDatabases } from "./support/admin.ts";

const [OLD, NEW, THIRD] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];
const base64 = (key: Uint8Array) => Buffer.from(key).toString("base64");
const ROTATION = { MASTER_KEY: base64(NEW), MASTER_KEY_SECONDARY: base64(OLD) };
const old = Vault.fromMasterKey(OLD);

const databases: Record<string, TestDatabase> = {};
beforeAll(async () => {
  for (const service of servicesWithDatabase()) databases[service] = await testDatabase(migrationsOf(service));
});
afterAll(async () => {
  await Promise.all(Object.values(databases).map((database) => database.close()));
});

const query = async (service: string, text: string, values: unknown[] = []) =>
  (await databases[service]!.database.sql.query<Record<string, string>>(text, values)).rows;
const rotate = (env: NodeJS.ProcessEnv = {}) =>
  admin("rotate-master-key", { ...namedDatabases(databases), ...ROTATION, ...env });

const SECRETS = 1_234;
const team = newUid();

beforeEach(async () => {
  await query("gateway", "TRUNCATE managed_secrets, master_key, api_keys, idempotency_keys CASCADE");
  await query("gateway", "INSERT INTO teams (uid, name) VALUES ($1, 'works') ON CONFLICT DO NOTHING", [team]);
  await query("gateway", "INSERT INTO master_key (key_id) VALUES ($1)", [masterKeyId(OLD)]);
  const uids = Array.from({ length: SECRETS }, () => newUid());
  await query(
    "gateway",
    `INSERT INTO managed_secrets (uid, team_uid, name, sealed, updated_by)
     SELECT uid, $1, 'TOKEN_' || number, sealed, 'somebody'
       FROM unnest($2::uuid[], $3::text[]) WITH ORDINALITY AS secret (uid, sealed, number)`,
    [team, uids, uids.map((uid) => old.seal(`value of ${uid}`, `secret:${uid}`))],
  );
});

const secrets = () => query("gateway", "SELECT uid, sealed FROM managed_secrets");

describe("rotate-master-key", () => {
  test("knows every column with sealed records", async () => {
    const columns = await Promise.all(
      Object.keys(databases).map(async (service) =>
        (
          await query(
            service,
            `SELECT table_name AS "table", column_name AS "column"
               FROM information_schema.columns
              WHERE table_schema = 'public'
                AND (column_name LIKE '%sealed' OR table_name = 'idempotency_keys' AND column_name = 'response' AND data_type = 'text')`,
          )
        ).map(({ table, column }) => `${service}.${table}.${column}`),
      ),
    );
    const known = Object.entries(SEALED_COLUMNS).flatMap(([service, list]) =>
      list.map(({ table, column }) => `${service}.${table}.${column}`),
    );
    expect(known.toSorted()).toEqual(columns.flat().toSorted());
  });

  test("rewraps every record in batches; then the new key alone reads them, and the old one is retired", async () => {
    const sealed = old.seal("webhook secret", "there");
    await query(
      "webhook-ingress",
      `INSERT INTO team_secrets (team_uid, name, sealed, revision) VALUES ($1, 'HOOK', $2, '1'), ($1, 'NONE', NULL, '1')`,
      [team, sealed],
    );
    const workerKey = createHash("sha256").update(platformWorkerKey(OLD)).digest("hex");
    await query(
      "gateway",
      `INSERT INTO api_keys (uid, hash, prefix, name, kind, created_by) VALUES ($1, $2, 'mww_', 'platform', 'worker', 'gateway')`,
      [newUid(), workerKey],
    );

    const { code, printed, errors } = await rotate();
    expect([code, errors]).toEqual([0, ""]);
    expect(printed).toContain(`gateway: managed_secrets: ${SECRETS} records rewrapped`);
    expect(printed).toContain("webhook-ingress: team_secrets: 1 records rewrapped");

    const current = Vault.fromMasterKey(NEW);
    const rows = await secrets();
    expect(rows.filter(({ uid, sealed: text }) => current.open(text!, `secret:${uid}`) !== `value of ${uid}`)).toEqual(
      [],
    );
    const [hook] = await query("webhook-ingress", "SELECT sealed FROM team_secrets WHERE name = 'HOOK'");
    expect(current.open(hook!["sealed"]!, "there")).toBe("webhook secret");
    expect(await query("gateway", "SELECT key_id, retired_key_ids FROM master_key")).toEqual([
      { key_id: masterKeyId(NEW), retired_key_ids: [masterKeyId(OLD)] },
    ]);
    expect(await query("gateway", "SELECT uid FROM api_keys")).toEqual([]);
  });

  test("resumes after an interruption, and repeating it changes nothing", async () => {
    const half = (await secrets()).slice(0, SECRETS / 2);
    const both = Vault.fromMasterKey(NEW, [OLD]);
    await query(
      "gateway",
      `UPDATE managed_secrets SET sealed = changed.after
         FROM unnest($1::text[], $2::text[]) AS changed (before, after)
        WHERE sealed = changed.before`,
      [half.map(({ sealed }) => sealed), half.map(({ sealed }) => both.rewrap(sealed!))],
    );
    expect((await rotate()).printed).toContain(`gateway: managed_secrets: ${SECRETS - half.length} records rewrapped`);
    expect(await rotate()).toMatchObject({ code: 0, printed: expect.stringContaining("managed_secrets: 0 records") });
  });

  test("fails before any change unless one of the keys is the platform's", async () => {
    const { code, errors } = await rotate({ MASTER_KEY_SECONDARY: base64(THIRD) });
    expect([code, errors]).toEqual([
      1,
      `The platform's master key is ${masterKeyId(OLD)}, which is neither of the given ones (${masterKeyId(NEW)}, ${masterKeyId(THIRD)}).`,
    ]);
    expect((await secrets()).every(({ sealed }) => old.isCurrent(sealed!))).toBe(true);
  });

  test("fails with a retired key as the new one", async () => {
    await rotate();
    expect(
      await rotate({ MASTER_KEY: ROTATION.MASTER_KEY_SECONDARY, MASTER_KEY_SECONDARY: ROTATION.MASTER_KEY }),
    ).toMatchObject({
      code: 1,
      errors: expect.stringContaining("was retired by an earlier rotation"),
    });
  });

  test.each([
    [{ MASTER_KEY_SECONDARY: "" }, "Set MASTER_KEY_SECONDARY"],
    [{ MASTER_KEY_SECONDARY: ROTATION.MASTER_KEY }, "are the same key"],
  ])("refuses %j", async (env, message) => {
    expect(await rotate(env)).toMatchObject({ code: 2, errors: expect.stringContaining(message) });
  });
});

import type { Sql } from "@millwright/database";
import { masterKeyId, type MasterKeys } from "@millwright/vault";

/** SQL for the key identifier of a sealed secret: `v1.<key id>.…`. */
const KEY_OF_SEALED = "split_part(sealed, '.', 2)";

/**
 * Records the master key's identifier on the first start, and compares it on every later start. If a version without
 * this record started the platform, the key of its newest secret is used for the comparison. During a rotation, the
 * recorded key may be the secondary one; afterwards the previous key is retired and never accepted as the master key.
 *
 * Errors: a plain Error, with both identifiers and the remedy, if the key is not the platform's.
 */
export async function verifyMasterKey(
  sql: Sql,
  { masterKey, secondaryMasterKey: secondary }: MasterKeys,
): Promise<void> {
  const given = masterKeyId(masterKey);
  const { rows } = await sql.query<{ keyId: string | null; isRetired: boolean }>(
    `SELECT coalesce((SELECT key_id FROM master_key),
                     (SELECT ${KEY_OF_SEALED} FROM managed_secrets ORDER BY updated_at DESC LIMIT 1)) AS "keyId",
            EXISTS (SELECT FROM master_key WHERE $1 = ANY (retired_key_ids)) AS "isRetired"`,
    [given],
  );
  const expected = rows[0]?.keyId ?? given;
  if (rows[0]?.isRetired) {
    throw new Error(
      `The master key (${given}) was retired by a rotation. Set MASTER_KEY to the key ${expected}; ` +
        "docs/operations/secure.md describes the rotation.",
    );
  }
  const accepted = [given, ...(secondary ? [masterKeyId(secondary)] : [])];
  if (!accepted.includes(expected)) {
    throw new Error(
      `The master key (${given}) is not the one of this platform (${expected}): no stored secret could be read. ` +
        "Put back the original key: master.key in the data directory of a standalone platform, MASTER_KEY of separate processes. " +
        '"millwright backup" stores a copy of it.',
    );
  }
  await sql.query("INSERT INTO master_key (key_id) VALUES ($1) ON CONFLICT DO NOTHING", [expected]);
}

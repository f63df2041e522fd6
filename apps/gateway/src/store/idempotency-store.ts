import { createHash } from "node:crypto";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { Vault } from "@millwright/vault";
import { canonicalJson } from "@millwright/json";
import type { IdempotencyKey } from "../rest/index.ts";
import type { IdentityDb, Tx } from "./identity-db.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;

/** Carries out a create once per Idempotency-Key; without a key, simply in a transaction. `create` answers the public body. */
export type CreateOnce = <T>(caller: Caller, idempotency: IdempotencyKey | undefined, create: (tx: Tx) => Promise<T>) => Promise<T>;

/**
 * The row of the key is written in the create's transaction, so both exist or neither; a concurrent repeat waits for the
 * first to commit. Answers are kept sealed for 24 h.
 *
 * Errors: idempotency_mismatch (conflict, not retryable) for another body under the same key.
 */
export const createOnce =
  (deps: { db: IdentityDb; vault: Vault; clock: Clock }): CreateOnce =>
  (caller, idempotency, create) =>
    deps.db.transaction(async (tx) => {
      if (!idempotency) return create(tx);
      const row = [`${caller.principal.type}:${caller.principal.uid}`, `${idempotency.operation} ${rightsOf(caller)}`, idempotency.key];
      const aad = `idempotency:${row.join(" ")}`;
      const now = deps.clock.now();
      if (await claim(tx.sql, row, idempotency.bodyHash, now)) {
        const answer = await create(tx);
        const sealed = deps.vault.seal(JSON.stringify(answer), aad);
        await tx.sql.query("UPDATE idempotency SET answer = $4 WHERE principal = $1 AND operation = $2 AND key = $3", [...row, sealed]);
        return answer;
      }
      const { rows } = await tx.sql.query<{ body_hash: string; answer: string }>(
        "SELECT body_hash, answer FROM idempotency WHERE principal = $1 AND operation = $2 AND key = $3",
        row,
      );
      const [first] = rows;
      if (first?.body_hash !== idempotency.bodyHash)
        throw new DomainError({ kind: "conflict", reason: "idempotency_mismatch", message: "This Idempotency-Key was used with another body." });
      return JSON.parse(deps.vault.open(first.answer, aad));
    });

/** A caller's rights in short: the first answer is told again only to a caller with the same ones. */
const rightsOf = ({ teams, activeTeamUid, platformAdmin, run }: Caller): string =>
  createHash("sha256").update(canonicalJson({ teams, activeTeamUid, platformAdmin, run: run?.runUid })).digest("base64url");

/** Whether this transaction is the first with the key (or the earlier one has expired). */
async function claim(sql: Sql, row: string[], bodyHash: string, now: Date): Promise<boolean> {
  const { rowCount } = await sql.query(
    `INSERT INTO idempotency AS i (principal, operation, key, body_hash, expires_at) VALUES ($1, $2, $3, $4, $5::timestamptz)
     ON CONFLICT (principal, operation, key) DO UPDATE SET body_hash = excluded.body_hash, answer = NULL, expires_at = excluded.expires_at
       WHERE i.expires_at <= $6::timestamptz
     RETURNING key`,
    [...row, bodyHash, new Date(now.getTime() + KEPT_MS), now],
  );
  return rowCount === 1;
}

/** Forgets expired answers. */
export async function pruneIdempotency(sql: Sql, now: Date): Promise<void> {
  await sql.query("DELETE FROM idempotency WHERE expires_at <= $1", [now]);
}

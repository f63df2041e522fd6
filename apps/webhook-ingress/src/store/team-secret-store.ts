import type { Database } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { teamSecretContext } from "./secret-contexts.ts";

export type TeamSecretName = { readonly teamUid: string; readonly name: string };
/** `revision` sorts after those of earlier values. */
export type TeamSecretValue = { readonly value: string | undefined; readonly revision: string };

/** Queries of the copies of managed secrets that webhooks name. */
export function teamSecretStore({ sql }: Pick<Database, "sql">, vault: Vault) {
  const seal = ({ teamUid, name }: TeamSecretName, value: string | undefined) =>
    value === undefined ? null : vault.seal(value, teamSecretContext(teamUid, name));
  return {
    /**
     * Registers a secret so that pushed values are stored. Call it before fetching the value, so that no concurrent
     * push is lost.
     */
    async register({ teamUid, name }: TeamSecretName): Promise<void> {
      await sql.query(
        "INSERT INTO team_secrets (team_uid, name, revision) VALUES ($1, $2, '') ON CONFLICT DO NOTHING",
        [teamUid, name],
      );
    },

    /** Stores a fetched value unless a newer one was pushed. */
    async storeFetched(secret: TeamSecretName, { value, revision }: TeamSecretValue): Promise<void> {
      await sql.query(
        `UPDATE team_secrets SET sealed = $3, revision = $4
          WHERE team_uid = $1 AND name = $2 AND revision < $4`,
        [secret.teamUid, secret.name, seal(secret, value), revision],
      );
    },

    /** Stores a pushed value of a registered secret. A retried push may have another value for the same revision. */
    async push(secret: TeamSecretName, { value, revision }: TeamSecretValue, now: Date): Promise<void> {
      await sql.query(
        `UPDATE team_secrets SET sealed = $3, revision = $4, unconfirmed_since = $5
          WHERE team_uid = $1 AND name = $2 AND revision <= $4`,
        [secret.teamUid, secret.name, seal(secret, value), revision, now],
      );
    },

    /** Lists secrets that were pushed before a time and not compared with the gateway since. */
    async unconfirmed(before: Date, limit: number): Promise<(TeamSecretName & { unconfirmedSince: Date })[]> {
      const { rows } = await sql.query<{ team_uid: string; name: string; unconfirmed_since: Date }>(
        "SELECT team_uid, name, unconfirmed_since FROM team_secrets WHERE unconfirmed_since < $1 ORDER BY unconfirmed_since LIMIT $2",
        [before, limit],
      );
      return rows.map((row) => ({ teamUid: row.team_uid, name: row.name, unconfirmedSince: row.unconfirmed_since }));
    },

    /**
     * Replaces a pushed value with the gateway's current one (undefined: none), unless another was pushed since. The
     * revision of a deleted secret is retained, so that a value that was fetched before the deletion is not stored
     * after it.
     */
    async confirm(
      secret: TeamSecretName & { unconfirmedSince: Date },
      present: { value: string; revision: string } | undefined,
    ): Promise<void> {
      await sql.query(
        `UPDATE team_secrets SET sealed = $4, revision = coalesce($5, revision), unconfirmed_since = NULL
          WHERE team_uid = $1 AND name = $2 AND unconfirmed_since = $3`,
        [secret.teamUid, secret.name, secret.unconfirmedSince, seal(secret, present?.value), present?.revision ?? null],
      );
    },
  };
}

export type TeamSecretStore = ReturnType<typeof teamSecretStore>;

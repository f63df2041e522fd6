import type { Database } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { teamSecretPlace } from "./secret-places.ts";

export type TeamSecretName = { readonly teamUid: string; readonly name: string };
/** `revision` sorts after those of earlier values. */
export type TeamSecretValue = { readonly value: string | undefined; readonly revision: string };

/** Copies of the managed secrets that webhooks name. */
export function teamSecretStore({ sql }: Pick<Database, "sql">, vault: Vault) {
  const seal = ({ teamUid, name }: TeamSecretName, value: string | undefined) =>
    value === undefined ? null : vault.seal(value, teamSecretPlace(teamUid, name));
  return {
    /** Begins to listen for pushed values, before the present one is fetched: none that comes meanwhile is lost. */
    async expect({ teamUid, name }: TeamSecretName): Promise<void> {
      await sql.query(
        "INSERT INTO team_secrets (team_uid, name, revision) VALUES ($1, $2, '') ON CONFLICT DO NOTHING",
        [teamUid, name],
      );
    },

    /** Takes a fetched value, unless a newer one was pushed. */
    async keep(secret: TeamSecretName, { value, revision }: TeamSecretValue): Promise<void> {
      await sql.query(
        "UPDATE team_secrets SET sealed = $3, revision = $4 WHERE team_uid = $1 AND name = $2 AND revision < $4",
        [secret.teamUid, secret.name, seal(secret, value), revision],
      );
    },

    /** Takes a value that is about to be acknowledged, if any webhook ever named it. A repetition may bring another value for the same revision. */
    async push(secret: TeamSecretName, { value, revision }: TeamSecretValue, now: Date): Promise<void> {
      await sql.query(
        "UPDATE team_secrets SET sealed = $3, revision = $4, pushed_at = $5 WHERE team_uid = $1 AND name = $2 AND revision <= $4",
        [secret.teamUid, secret.name, seal(secret, value), revision, now],
      );
    },

    /** Pushed before `before` and not compared with the gateway since. */
    async unconfirmed(before: Date, limit: number): Promise<(TeamSecretName & { pushedAt: Date })[]> {
      const { rows } = await sql.query<{ team_uid: string; name: string; pushed_at: Date }>(
        "SELECT team_uid, name, pushed_at FROM team_secrets WHERE pushed_at < $1 ORDER BY pushed_at LIMIT $2",
        [before, limit],
      );
      return rows.map((row) => ({ teamUid: row.team_uid, name: row.name, pushedAt: row.pushed_at }));
    },

    /**
     * Takes what the gateway has (undefined: none), whatever was pushed, unless something else was pushed since. Of a secret that is gone the revision stays:
     * a value that was fetched before it went, and is kept late, must not come back.
     */
    async confirm(
      secret: TeamSecretName & { pushedAt: Date },
      present: { value: string; revision: string } | undefined,
    ): Promise<void> {
      await sql.query(
        "UPDATE team_secrets SET sealed = $4, revision = coalesce($5, revision), pushed_at = NULL WHERE team_uid = $1 AND name = $2 AND pushed_at = $3",
        [secret.teamUid, secret.name, secret.pushedAt, seal(secret, present?.value), present?.revision ?? null],
      );
    },
  };
}

export type TeamSecretStore = ReturnType<typeof teamSecretStore>;

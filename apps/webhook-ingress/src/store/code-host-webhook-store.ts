import type { Database } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, type TeamUid } from "@millwright/ids";
import type { Vault } from "@millwright/vault";
import type { CodeHostUid, CodeHostWebhook, Provider } from "../domain/code-host-webhook.ts";
import { codeHostSecretContext } from "./secret-contexts.ts";

/** The stored state of a connection: its open address, or what remains of a closed one. */
export type CodeHostState = {
  readonly open: CodeHostWebhook | undefined;
  readonly version: number;
  readonly isRemoved: boolean;
  readonly owner: string | undefined;
};

/** A change: the next state, the new secret if any, and the event. */
export type CodeHostChange = {
  readonly next: CodeHostWebhook;
  readonly state: "open" | "closed" | "removed";
  readonly secret?: string | undefined;
  readonly event?: NewEvent;
};

/** Queries of the addresses of code-host connections and their secrets. */
export function codeHostWebhookStore(database: Database, vault: Vault) {
  return {
    /** Returns an open address; undefined otherwise. */
    async find(codeHostUid: string): Promise<CodeHostWebhook | undefined> {
      const { rows } = await database.sql.query<CodeHostRow>(
        `${SELECT} WHERE w.code_host_uid = $1 AND w.secret_sealed IS NOT NULL`,
        [codeHostUid],
      );
      return rows[0] && toCodeHostWebhook(rows[0]);
    },

    /** Changes a connection under a lock, so that concurrent changes of the same connection run one after the other. */
    async change(codeHostUid: string, decide: (current: CodeHostState) => CodeHostChange): Promise<CodeHostWebhook> {
      return database.transaction(async (tx) => {
        await tx.query("SELECT pg_advisory_xact_lock(hashtextextended('code host ' || $1::text, 0))::text", [
          codeHostUid,
        ]);
        const { rows } = await tx.query<CodeHostRow>(`${SELECT} WHERE w.code_host_uid = $1`, [codeHostUid]);
        const row = rows[0];
        const { next, state, secret, event } = decide({
          open: row?.is_open ? toCodeHostWebhook(row) : undefined,
          version: row?.version ?? 0,
          isRemoved: row?.is_removed ?? false,
          owner: row?.team_uid,
        });
        await tx.query(
          `INSERT INTO code_host_webhooks AS w (code_host_uid, team_uid, provider, bot_login, enabled, secret_sealed, is_removed,
                                                version, created_at, updated_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
           ON CONFLICT (code_host_uid) DO UPDATE
              SET provider = excluded.provider, bot_login = excluded.bot_login, enabled = excluded.enabled,
                  is_removed = w.is_removed OR excluded.is_removed, version = excluded.version,
                  secret_sealed = CASE WHEN $11::text = 'open' THEN coalesce(excluded.secret_sealed, w.secret_sealed) END,
                  created_at = excluded.created_at, updated_at = excluded.updated_at`,
          [
            codeHostUid,
            next.teamUid,
            next.provider,
            next.botLogin,
            next.enabled,
            secret === undefined ? null : vault.seal(secret, codeHostSecretContext(codeHostUid)),
            state === "removed",
            next.version,
            next.createdAt,
            next.updatedAt,
            state,
          ],
        );
        if (event) await appendEvents(tx, [event]);
        return next;
      });
    },
  };
}

export type CodeHostWebhookStore = ReturnType<typeof codeHostWebhookStore>;

const SELECT = `
SELECT w.code_host_uid, w.team_uid, w.provider, w.bot_login, w.enabled, w.secret_sealed IS NOT NULL AS is_open, w.is_removed,
       w.version, w.created_at, w.updated_at,
       (SELECT d.received_at FROM code_host_deliveries d WHERE d.code_host_uid = w.code_host_uid
         ORDER BY d.received_at DESC, d.uid DESC LIMIT 1) AS last_delivery_at
  FROM code_host_webhooks w`;

type CodeHostRow = {
  code_host_uid: string;
  team_uid: string;
  provider: Provider;
  bot_login: string;
  enabled: boolean;
  is_open: boolean;
  is_removed: boolean;
  version: number;
  created_at: Date;
  updated_at: Date;
  last_delivery_at: Date | null;
};

const toCodeHostWebhook = (row: CodeHostRow): CodeHostWebhook => ({
  codeHostUid: as<CodeHostUid>(row.code_host_uid),
  teamUid: as<TeamUid>(row.team_uid),
  provider: row.provider,
  botLogin: row.bot_login,
  enabled: row.enabled,
  version: row.version,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastDeliveryAt: row.last_delivery_at ?? undefined,
});

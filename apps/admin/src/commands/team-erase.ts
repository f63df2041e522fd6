import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "pg";
import { openBlobs } from "../blobs.ts";
import { UsageError, type Admin, type Command } from "../command.ts";
import { hasTable, valuesOf, withClient } from "../databases.ts";
import { withPlatform, type PlatformDatabases } from "../platform.ts";
import { findTeam } from "../team/find-team.ts";
import { teamBlobs } from "../team/team-blobs.ts";
import { ofOwner, type TeamScope } from "../team/team-scope.ts";
import { STREAM_TABLES, TEAM_TABLES } from "../team/team-tables.ts";

const ACTIVE_RUNS = "state NOT IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')";
/**
 * Entries of the cost ledger are never changed or deleted. They have amounts and uids, which no other row refers
 * to. The event log retains its rows for its positions, with texts redacted.
 */
const RETAINED_TABLES: ReadonlySet<string> = new Set(["ledger_entries", "stream.event_log"]);

/** Tables whose triggers refuse every deletion. Their notes are texts of people. */
const APPEND_ONLY: ReadonlySet<string> = new Set(["credit_grants"]);

const WAIT_MS = 500;
const WAITS = 60;

export const teamErase: Command = {
  words: "team erase",
  args: ["TEAM"],
  options: { "--confirm <name>": "the name of the team; without it, nothing is erased" },
  summary: "Erases a team: its rows in every service, its files, and the accounts that are in no other team.",
  details: [
    "TEAM: the uid of the team. No run may be active. Export it before (team export): an erasure cannot be undone.",
    "Run it while the services run: what they have not consumed yet would create rows again.",
    "Interrupted, run it again. Backups contain the team until they are deleted.",
  ],
  async run(admin, [team = ""], { confirm }) {
    await withPlatform(admin.env, async (databases) => {
      const scope = await findTeam(databases, team);
      const [name = ""] = await withClient(databases["gateway"]!, (db) =>
        valuesOf(db, "SELECT name AS value FROM teams WHERE uid = $1", [team]),
      );
      if (confirm !== name) throw new UsageError(`To erase the team, repeat the command with --confirm '${name}'.`);
      await erase(admin, databases, scope);
    });
  },
};

async function erase({ env, print }: Admin, databases: PlatformDatabases, scope: TeamScope): Promise<void> {
  await requireNoActiveRun(databases, scope);
  await withClient(databases["gateway"]!, (db) => revoke(db, scope));
  await awaitConsumers(databases);
  await requireNoActiveRun(databases, scope);

  const blobs = openBlobs(env);
  let files = 0;
  for await (const key of teamBlobs(databases, scope, blobs)) {
    await blobs.delete(key);
    files += 1;
  }
  print(`files: ${files} erased`);
  const { gateway, ...others } = TEAM_TABLES;
  for (const [service, tables] of Object.entries({ ...others, gateway: gateway! })) {
    const rows = await withClient(databases[service]!, (db) => eraseRows(db, tables, scope));
    print(`${service}: ${rows} rows erased`);
  }
  print(`Erased  team ${scope.team} (${scope.factories.length} factories, ${scope.users.length} accounts)`);
}

async function requireNoActiveRun(databases: PlatformDatabases, scope: TeamScope): Promise<void> {
  const active = await withClient(databases["orchestrator"]!, (db) =>
    valuesOf(db, `SELECT uid AS value FROM runs WHERE ${ofOwner(scope)} AND ${ACTIVE_RUNS} LIMIT 5`),
  );
  if (active.length > 0)
    throw new Error(`The team has active runs, such as ${active.join(", ")}: cancel them, or wait for their end.`);
}

/** Revokes all keys and disables what starts runs by itself, so that nothing new is created. */
async function revoke(db: Client, { team, users }: TeamScope): Promise<void> {
  await db.query("DELETE FROM api_keys WHERE team_uid = $1 OR user_uid = ANY ($2::uuid[])", [team, users]);
  await db.query("DELETE FROM invitations WHERE team_uid = $1", [team]);
}

/**
 * Waits until the events that are committed now are in the logs, and every consumer has applied them. Throws if this
 * takes longer than half a minute, because a service does not run.
 */
async function awaitConsumers(databases: PlatformDatabases): Promise<void> {
  const services = Object.entries(databases);
  const heads = new Map<string, number>();
  for (let attempt = 1; ; attempt++) {
    const late: string[] = [];
    for (const [service, url] of services) {
      const { head, pending } = await withClient(url, readHead);
      if (pending) late.push(`the log of ${service}`);
      if (!heads.has(service)) heads.set(service, head);
    }
    for (const [service, url] of services)
      for (const { reader, source, position } of await withClient(url, readCursors))
        if (Number(position) < (heads.get(source) ?? 0)) late.push(`${reader} of ${service}`);
    if (late.length === 0) return;
    if (attempt === WAITS)
      throw new Error(
        `Events are not applied yet by ${[...new Set(late)].join(", ")}. Start all services, then repeat.`,
      );
    await pause(WAIT_MS);
  }
}

async function readHead(db: Client): Promise<{ head: number; pending: boolean }> {
  const { rows } = await db.query<{ head: string; pending: boolean }>(
    "SELECT head, EXISTS (SELECT FROM stream.event_pending) AS pending FROM stream.event_meta",
  );
  return { head: Number(rows[0]?.head ?? 0), pending: rows[0]?.pending ?? false };
}

const readCursors = async (db: Client): Promise<{ reader: string; source: string; position: string }[]> =>
  (
    await db.query<{ reader: string; source: string; position: string }>(
      "SELECT reader, source, position FROM stream.feed_cursors WHERE stopped_reason IS NULL AND reader <> 'nats-relay'",
    )
  ).rows;

/** Deletes the team's rows of a service and redacts its events, in one transaction. Returns the number of rows. */
async function eraseRows(db: Client, tables: (typeof TEAM_TABLES)[string], scope: TeamScope): Promise<number> {
  let count = 0;
  await db.query("BEGIN");
  const all = { ...STREAM_TABLES, ...tables };
  for (const [table, rowsOf] of Object.entries(all)) {
    if (!rowsOf || RETAINED_TABLES.has(table) || !(await hasTable(db, table))) continue;
    const isAppendOnly = APPEND_ONLY.has(table);
    if (isAppendOnly) await db.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
    count += (await db.query(`DELETE FROM ${table} WHERE ${rowsOf(scope)}`)).rowCount ?? 0;
    if (isAppendOnly) await db.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
  }
  count += await redactEvents(db, scope);
  await db.query("COMMIT");
  return count;
}

/** Members of event payloads that contain texts of users. */
const TEXTS: ReadonlySet<string> = new Set(["name", "title", "ticket_source", "ticket_id", "ticket_url", "event"]);

/** Replaces the texts in a team's events. The events stay, because positions of a log have no gaps. */
async function redactEvents(db: Client, { team }: TeamScope): Promise<number> {
  const { rows } = await db.query<{ position: string; payload: unknown }>(
    "SELECT position, payload FROM stream.event_log WHERE team_uid = $1",
    [team],
  );
  for (const { position, payload } of rows)
    await db.query("UPDATE stream.event_log SET payload = $2::jsonb WHERE position = $1", [
      position,
      JSON.stringify(payload, (key, value: unknown) =>
        TEXTS.has(key) && typeof value === "string" ? "erased" : value,
      ),
    ]);
  return rows.length;
}

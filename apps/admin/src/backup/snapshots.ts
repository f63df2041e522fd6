import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import type { PlatformDatabases } from "../platform.ts";
import { valuesOf } from "../databases.ts";

const ATTEMPTS = 20;
const LOCK_TIMEOUT_MS = 2_000;
const RETRY_MS = 250;

/** Every table with rows of its own. Unlogged ones have counts of the last minute. */
const TABLES = `SELECT format('%I.%I', n.nspname, c.relname) AS value
   FROM pg_class c
   JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname IN ('public', 'stream')
  ORDER BY 1`;

/**
 * Opens a read-only transaction in every database, all with the state of one instant: writes in all
 * databases wait while the snapshots are taken. Services read each other's logs by position and store results of calls
 * to each other, so snapshots of different instants would be inconsistent.
 *
 * Throws if a table stays locked for about 45 s. The caller ends the clients.
 */
export async function openSnapshots(databases: PlatformDatabases): Promise<ReadonlyMap<string, Client>> {
  const lockers = new Map<string, Client>();
  const readers = new Map<string, Client>();
  try {
    for (const [service, url] of Object.entries(databases)) {
      lockers.set(service, await connect(url));
      readers.set(service, await connect(url));
    }
    await lockAll([...lockers.values()]);
    for (const reader of readers.values()) {
      await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      await reader.query("SELECT pg_current_snapshot()");
    }
    return readers;
  } catch (error) {
    await endAll(readers.values());
    throw error;
  } finally {
    await endAll(lockers.values()); // releases the locks
  }
}

export const endAll = async (clients: Iterable<Client>): Promise<void> =>
  void (await Promise.all([...clients].map((client) => client.end().catch(() => {}))));

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: "backup" });
  client.on("error", () => {}); // the running statement reports it
  await client.connect();
  return client;
}

/** Locks all tables of all databases against writes. Gives all locks back and tries again if one must be waited for. */
async function lockAll(clients: readonly Client[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const client of clients) {
        await client.query("BEGIN");
        await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        const tables = await valuesOf(client, TABLES);
        await client.query(`LOCK TABLE ${tables.join(", ")} IN SHARE MODE`);
      }
      return;
    } catch (error) {
      await Promise.all(clients.map((client) => client.query("ROLLBACK")));
      if (!["55P03", "40P01"].includes((error as { code?: string }).code ?? "") || attempt === ATTEMPTS) throw error;
      await pause(RETRY_MS);
    }
  }
}

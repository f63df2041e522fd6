import { setTimeout as pause } from "node:timers/promises";
import { table } from "@millwright/terminal";
import type { Client } from "pg";
import { UsageError, type Command } from "../command.ts";
import { withClient } from "../databases.ts";
import { withPlatform, type PlatformDatabases } from "../platform.ts";

type DeadLettered = {
  readonly service: string;
  readonly consumer: string;
  readonly source: string;
  readonly position: number;
  readonly type: string;
  readonly entity: string;
  readonly attempts: number;
  readonly dead_lettered_at: string;
  readonly reason: string;
  readonly event: unknown;
};

export const eventsList: Command = {
  words: "events list",
  args: ["[SERVICE]"],
  options: { "--json": "print the events with their payloads as JSON" },
  summary: "Lists events that a consumer could not apply, and the later ones of the same entity, which wait.",
  details: ["SERVICE: only the consumers of this service. Default: all."],
  async run({ env, print }, [service], { json }) {
    await withPlatform(env, async (databases) => {
      const events = await readAll(select(databases, service));
      if (json === true) print(JSON.stringify(events, null, 2));
      else print(events.length === 0 ? NONE : describe(events));
    });
  },
};

const POLL_MS = 200;

export const eventsReplay: Command = {
  words: "events replay",
  args: ["[SERVICE]"],
  options: { "--wait <seconds>": "how long to wait for the consumers; default 30" },
  summary: "Requests that the running services apply their dead-lettered events again, in order.",
  details: [
    "SERVICE: only the consumers of this service. Default: all.",
    "A consumer applies an entity's events up to the first that fails again; those after it keep waiting.",
    "A service that does not run replays the events when it starts. Exit code 1 if events remain.",
  ],
  async run({ env, print }, [service], { wait = "30" }) {
    const seconds = Number(wait);
    if (!Number.isInteger(seconds) || seconds < 0)
      throw new UsageError(`--wait must be a whole number of seconds (got ${String(wait)}).`);
    return withPlatform(env, async (databases) => {
      const selected = select(databases, service);
      const before = await readAll(selected);
      if (before.length === 0) return print(NONE);
      for (const [name, url] of Object.entries(selected)) await withClient(url, (db) => requestReplay(db, name));
      await awaitReplay(selected, Date.now() + seconds * 1000);
      const after = new Set((await readAll(selected)).map(keyOf));
      const remaining = before.filter((event) => after.has(keyOf(event)));
      print(`${before.length - remaining.length} events applied, ${remaining.length} remain.`);
      if (remaining.length === 0) return;
      print(describe(remaining));
      return false;
    });
  },
};

export const eventsDiscard: Command = {
  words: "events discard",
  args: ["SERVICE", "CONSUMER", "SOURCE", "POSITION"],
  summary: "Discards one dead-lettered event without applying it, and replays the later ones of its entity.",
  details: [
    "The arguments are the columns of events list. The service lacks the event's effect from then on.",
    "Prints the event as JSON: there is no other copy when the source's log has deleted it.",
  ],
  async run({ env, print }, [service = "", consumer = "", source = "", text = ""]) {
    const position = Number(text);
    if (!Number.isSafeInteger(position) || position < 1)
      throw new UsageError(`POSITION must be a positive whole number (got ${text}).`);
    await withPlatform(env, async (databases) => {
      const url = select(databases, service)[service]!;
      print(JSON.stringify(await withClient(url, (db) => discard(db, [consumer, source, position])), null, 2));
    });
  },
};

const NONE = "No event is dead-lettered.";

/** Returns the databases of one service, or of all if none is named. */
function select(databases: PlatformDatabases, service: string | undefined): PlatformDatabases {
  if (service === undefined) return databases;
  const url = databases[service];
  if (!url) throw new UsageError(`Unknown service "${service}". Services: ${Object.keys(databases).join(", ")}.`);
  return { [service]: url };
}

async function readAll(databases: PlatformDatabases): Promise<DeadLettered[]> {
  const found: DeadLettered[] = [];
  for (const [service, url] of Object.entries(databases))
    found.push(...(await withClient(url, (db) => readDeadLettered(db, service))));
  return found;
}

async function readDeadLettered(db: Client, service: string): Promise<DeadLettered[]> {
  const { rows } = await db.query<DeadLettered>(
    `SELECT $1::text AS service,
            reader AS consumer,
            source,
            position::float8 AS position,
            event ->> 'type' AS type,
            entity || ' ' || entity_uid AS entity,
            attempts,
            to_char(dead_lettered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS dead_lettered_at,
            reason,
            event
       FROM stream.dead_lettered_events
      ORDER BY reader, source, dead_lettered_events.position`,
    [service],
  );
  return rows;
}

const keyOf = ({ service, consumer, source, position }: DeadLettered): string =>
  [service, consumer, source, position].join("/");

const describe = (events: readonly DeadLettered[]): string =>
  table(
    ["SERVICE", "CONSUMER", "SOURCE", "POSITION", "TYPE", "ENTITY", "REPLAYS", "SINCE", "REASON"],
    events.map((event) => [
      event.service,
      event.consumer,
      event.source,
      String(event.position),
      event.type,
      event.entity,
      String(event.attempts),
      event.dead_lettered_at,
      event.reason,
    ]),
  );

async function requestReplay(db: Client, service: string): Promise<void> {
  const { rows } = await db.query<{ consumer: string }>(
    `SELECT DISTINCT reader AS consumer
       FROM stream.dead_lettered_events d
      WHERE NOT EXISTS (SELECT FROM stream.feed_cursors c WHERE c.reader = d.reader AND c.source = d.source)`,
  );
  if (rows.length > 0)
    throw new Error(`${service} has no cursor of ${rows[0]!.consumer}: its events can only be discarded.`);
  await db.query(
    `UPDATE stream.feed_cursors c
        SET replay_requested_at = now()
      WHERE EXISTS (SELECT FROM stream.dead_lettered_events d WHERE d.reader = c.reader AND d.source = c.source)`,
  );
}

/** Waits until the consumers have replayed. Throws if a request is left at the deadline. */
async function awaitReplay(databases: PlatformDatabases, deadlineMs: number): Promise<void> {
  for (const [service, url] of Object.entries(databases))
    await withClient(url, async (db) => {
      while (await isReplayRequested(db)) {
        if (Date.now() >= deadlineMs)
          throw new Error(`${service} has not replayed its events yet. If it does not run, it replays when it starts.`);
        await pause(POLL_MS);
      }
    });
}

const isReplayRequested = async (db: Client): Promise<boolean> =>
  (
    await db.query<{ requested: boolean }>(
      "SELECT EXISTS (SELECT FROM stream.feed_cursors WHERE replay_requested_at IS NOT NULL) AS requested",
    )
  ).rows[0]!.requested;

/** Deletes the event and returns it. Locks the cursor, so that the consumer does not apply events meanwhile. */
async function discard(
  db: Client,
  key: readonly [consumer: string, source: string, position: number],
): Promise<unknown> {
  const [consumer, source, position] = key;
  await db.query("BEGIN");
  await db.query("SELECT FROM stream.feed_cursors WHERE reader = $1 AND source = $2 FOR UPDATE", [consumer, source]);
  const { rows } = await db.query<{ event: unknown }>(
    "DELETE FROM stream.dead_lettered_events WHERE reader = $1 AND source = $2 AND position = $3 RETURNING event",
    [...key],
  );
  if (rows.length === 0)
    throw new Error(`No event of ${source} at position ${position} is dead-lettered by ${consumer}: see events list.`);
  await db.query(
    `UPDATE stream.feed_cursors c
        SET replay_requested_at = now()
      WHERE reader = $1
        AND source = $2
        AND EXISTS (SELECT FROM stream.dead_lettered_events d WHERE d.reader = c.reader AND d.source = c.source)`,
    [consumer, source],
  );
  await db.query("COMMIT");
  return rows[0]!.event;
}

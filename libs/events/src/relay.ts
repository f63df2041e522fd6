import { create, toJsonString } from "@bufbuild/protobuf";
import type { JetStreamClient, JetStreamManager } from "nats";
import { events as contract } from "@millwright/contracts";
import { BackgroundLoop } from "@millwright/database";
import type { Database } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import type { EventLog } from "./event-log.ts";
import type { StoredEvent } from "./event.ts";
import { toMessage } from "./feed-messages.ts";
import type { NatsLink } from "./nats-link.ts";

export type RelayDeps = { eventLog: EventLog; database: Database; nats: NatsLink; log: Logger };

/** The JetStream stream of all services' lifecycle events; subjects are the event types. */
export const STREAM = "MILLWRIGHT_EVENTS";

const CURSOR = ["nats-relay", "own log"] as const;
const BATCH = 200;
const WAIT_MS = 2000;
/** Time between two publications; events that follow each other are published together. */
const PAUSE_MS = 50;
const KEEP_NANOSECONDS = 7 * 24 * 3600 * 1e9;

/**
 * Publishes this service's log to JetStream, at least once: the public lifecycle feed and the wake-ups of the other
 * services. Delivery is not essential: the log has everything that NATS loses or misses.
 */
export class Relay {
  readonly #deps: RelayDeps;
  readonly #loop: BackgroundLoop;
  #stopping = new AbortController();
  #hasCursor = false;
  #hasStream = false;

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#loop = new BackgroundLoop({
      everyMs: PAUSE_MS,
      step: () => this.#step(),
      onError: (error) => {
        this.#hasStream = false; // it may have been wiped
        deps.log.warn({ component: "relay", error }, "events were not published; they are retried");
      },
    });
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
  }

  async #step(): Promise<"again" | "idle"> {
    const { signal } = this.#stopping;
    if (!this.#hasCursor) await this.#createCursor();
    const nats = await unlessAborted(this.#deps.nats.connection(), signal);
    if (!nats) return "idle";
    const cursor = await this.#readCursor();
    const page = await this.#deps.eventLog.read({ after: cursor.position, limit: BATCH, waitMs: WAIT_MS, signal });
    if (cursor.logUid !== null && cursor.logUid !== page.logUid) {
      this.#deps.log.error(
        { component: "relay", logUid: page.logUid },
        "the log was replaced; it is published from its start",
      );
      await this.#writeCursor(page.logUid, 0);
      return "again";
    }
    if (page.events.length === 0) return "idle";
    if (!this.#hasStream) await ensureStream(await nats.jetstreamManager());
    this.#hasStream = true;
    await publish(nats.jetstream(), page.events);
    await this.#writeCursor(page.logUid, page.events.at(-1)?.position ?? cursor.position);
    return page.events.length < BATCH ? "idle" : "again";
  }

  /** Creates the cursor before the first connection, so that the lag of a relay that never connects is measured. */
  async #createCursor(): Promise<void> {
    await this.#deps.database.sql.query(
      "INSERT INTO stream.feed_cursors (reader, source) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      [...CURSOR],
    );
    this.#hasCursor = true;
  }

  async #readCursor(): Promise<{ logUid: string | null; position: number }> {
    const { rows } = await this.#deps.database.sql.query<{ logUid: string | null; position: number }>(
      `SELECT log_uid AS "logUid", position FROM stream.feed_cursors WHERE reader = $1 AND source = $2`,
      CURSOR,
    );
    return rows[0] ?? { logUid: null, position: 0 };
  }

  /** Another replica may have published more concurrently: its position is retained. */
  async #writeCursor(logUid: string, position: number): Promise<void> {
    await this.#deps.database.sql.query(
      `INSERT INTO stream.feed_cursors AS c (reader, source, log_uid, position) VALUES ($1, $2, $3, $4)
       ON CONFLICT (reader, source) DO UPDATE SET log_uid = $3, updated_at = now(),
         position = CASE WHEN c.log_uid = $3 THEN greatest(c.position, $4) ELSE $4 END`,
      [...CURSOR, logUid, position],
    );
  }
}

/** JetStream deduplicates by the event uid within its window of two minutes. */
async function publish(jetstream: JetStreamClient, events: readonly StoredEvent[]): Promise<void> {
  await Promise.all(
    events.map((event) => {
      const body = toJsonString(contract.EventSchema, create(contract.EventSchema, toMessage(event)));
      return jetstream.publish(event.type, body, { msgID: event.uid });
    }),
  );
}

async function ensureStream(manager: JetStreamManager): Promise<void> {
  // Adding a stream that exists with the same configuration is not an error.
  await manager.streams.add({ name: STREAM, subjects: ["millwright.>"], max_age: KEEP_NANOSECONDS });
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  let end = (): void => {};
  const aborted = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined);
    signal.addEventListener("abort", end);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", end); // the signal outlives a great many steps
  }
}

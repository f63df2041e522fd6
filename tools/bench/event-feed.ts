import { join } from "node:path";
import { systemClock } from "@millwright/clock";
import { Database, ensureDatabase, migrate } from "@millwright/database";
import { appendEvents, Consumer, EventLog, localWakeupBus, type EventHandler, type NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { createLogger } from "@millwright/telemetry";
import type { Platform } from "./platform.ts";

export const EVENT_TYPE = "millwright.run.created.v1";
const MIGRATIONS = join(import.meta.dirname, "../../apps/orchestrator/prisma/migrations");

/**
 * Runs an event feed as services of one process use it: an event log on one database, consumers on another, a wake-up
 * bus between them. `append` commits events. The consumers have applied all earlier events when `use` is called.
 */
export async function withFeed<T>(
  platform: Platform,
  consumers: Readonly<Record<string, EventHandler>>,
  use: (append: (events: readonly NewEvent[]) => Promise<void>) => Promise<T>,
): Promise<T> {
  const [owner, reader] = [await open(platform, "bench_feed_owner"), await open(platform, "bench_feed_reader")];
  const log = createLogger({ service: "bench", level: "error" });
  const wakeups = localWakeupBus();
  const eventLog = new EventLog({ database: owner, clock: systemClock, log, wakeups });
  const started = Object.entries(consumers).map(
    ([name, handle]) =>
      new Consumer({
        name,
        source: "bench",
        read: (range) => eventLog.read(range),
        database: reader,
        clock: systemClock,
        log,
        handlers: { [EVENT_TYPE]: handle },
        wakeups,
      }),
  );
  eventLog.start();
  try {
    for (const consumer of started) {
      await consumer.drain();
      consumer.start();
    }
    return await use((events) => owner.transaction((tx) => appendEvents(tx, events)));
  } finally {
    await Promise.all(started.map((consumer) => consumer.stop()));
    await eventLog.stop();
    await Promise.all([owner.close(), reader.close()]);
  }
}

async function open(platform: Platform, name: string): Promise<Database> {
  await ensureDatabase(platform.databaseUrl("postgres"), name);
  await migrate(platform.databaseUrl(name), MIGRATIONS);
  return Database.open(platform.databaseUrl(name), { max: 4, applicationName: "bench" });
}

export const anEvent = (entityVersion = 1): NewEvent => {
  const uid = newUid();
  return {
    type: EVENT_TYPE,
    entity: "run",
    entityUid: uid,
    entityVersion,
    actor: { type: "user", uid: "bench" },
    requestId: uid,
    payload: { run_uid: uid, title: "A run" },
  };
};

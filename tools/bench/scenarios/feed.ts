import { setTimeout as pause } from "node:timers/promises";
import type { EventHandler } from "@millwright/events";
import { connect } from "nats";
import { createRun } from "../api.ts";
import type { Bench } from "../bench.ts";
import { anEvent, EVENT_TYPE, withFeed } from "../event-feed.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";

const BURST_BATCH = 20;

/** Measures the event feed: within one process, or between processes through NATS. */
export const measureFeed = (bench: Bench): Promise<Measured[]> =>
  bench.platform.setup === "standalone" ? measureWithinProcess(bench) : measureOnNats(bench);

/**
 * Measures the event feed as services of one process use it: an event log on one database, a consumer on another, a
 * wake-up bus between them. Lag is the time from the commit of the change until the consumer's handler receives the
 * event.
 */
async function measureWithinProcess({ platform, isQuick }: Bench): Promise<Measured[]> {
  let count = 0;
  let seen: (uid: string) => void = () => {};
  const handle: EventHandler = (_tx, { entityUid }) => ((count += 1), seen(entityUid), Promise.resolve());
  return withFeed(platform, { bench: handle }, async (append) => {
    const latencies: number[] = [];
    for (let n = 0; n < (isQuick ? 40 : 100); n++) {
      const event = anEvent();
      const arrived = new Promise<number>(
        (resolve) => (seen = (uid) => uid === event.entityUid && resolve(performance.now())),
      );
      await append([event]);
      const committedMs = performance.now();
      latencies.push(Math.max(0, (await arrived) - committedMs));
      await pause(210); // longer than the batching window, so that each event starts a new batch
    }
    const burst = isQuick ? 1_000 : 5_000;
    const goal = count + burst;
    const whole = new Promise<void>((resolve) => (seen = () => count === goal && resolve()));
    const beganMs = performance.now();
    for (let n = 0; n < burst; n += BURST_BATCH) await append(Array.from({ length: BURST_BATCH }, () => anEvent()));
    await whole;
    const perSecond = round(burst / ((performance.now() - beganMs) / 1000));
    return [
      { what: "feed lag, commit to consumer", who: "millwright", latencyMs: summarize(latencies.slice(10)) },
      { what: "events through the feed", who: "millwright", perSecond },
    ];
  });
}

/**
 * Measures the lag from the response to a request, which is sent after its commit, until a NATS subscriber receives the
 * event. Returns no rows without nats-server.
 */
async function measureOnNats({ platform, isQuick }: Bench): Promise<Measured[]> {
  if (platform.nats === undefined) return [];
  const nats = await connect({ servers: platform.nats.url });
  const arrivals = new Map<string, number>();
  let notifyArrival: () => void = () => {};
  nats.subscribe(EVENT_TYPE, {
    callback: (_error, message) => (
      arrivals.set(message.json<{ entityUid: string }>().entityUid, performance.now()),
      notifyArrival()
    ),
  });
  await nats.flush();
  try {
    const latencies: number[] = [];
    for (let n = 0; n < (isQuick ? 40 : 100); n++) {
      const uid = await createRun(platform.url);
      const answeredMs = performance.now();
      while (!arrivals.has(uid)) await new Promise<void>((resolve) => (notifyArrival = resolve));
      latencies.push(Math.max(0, arrivals.get(uid)! - answeredMs));
      await pause(210); // longer than the batching window, so that each event starts a new batch
    }
    return [
      { what: "feed lag, answer to NATS subscriber", who: "millwright", latencyMs: summarize(latencies.slice(10)) },
    ];
  } finally {
    await nats.close();
  }
}

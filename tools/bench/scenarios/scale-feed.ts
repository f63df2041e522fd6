import { setTimeout as pause } from "node:timers/promises";
import type { EventHandler } from "@millwright/events";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { anEvent, withFeed } from "../event-feed.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";

const RATES = [100, 1_000, 10_000];
const SECONDS = 10;
const BATCHES_PER_SECOND = 50;
const CONSUMERS = ["scale-1", "scale-2"];

/**
 * Measures two consumers of the event feed within one process at fixed rates. Lag is the time from the commit of an
 * event until the handler of a consumer receives it. The processor time is that of the log, both consumers and the
 * appending together. Fails unless each consumer receives each event once, in order. Returns no rows beside separate
 * processes, whose feed is the same code.
 */
export async function measureScaleOfFeed(bench: Bench): Promise<Measured[]> {
  if (bench.platform.setup !== "standalone") return [];
  const rows: Measured[] = [];
  for (const rate of RATES) rows.push(await measureRate(bench, rate));
  return rows;
}

async function measureRate({ platform, meter, isQuick }: Bench, perSecond: number): Promise<Measured> {
  const seconds = isQuick ? 2 : SECONDS;
  const total = perSecond * seconds;
  const committedMs = new Float64Array(total + 1);
  const received = CONSUMERS.map(() => new Float64Array(total + 1));
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => undefined); // awaited only after the last event is appended
  let isMeasuring = false;
  let unfinished = CONSUMERS.length;
  const handlers = received.map((times): EventHandler => {
    let last = 0;
    return async (_tx, { entityVersion }) => {
      if (!isMeasuring) return; // an event of an earlier measurement
      if (entityVersion !== last + 1)
        return done.reject(new Error(`A consumer received event ${entityVersion} after event ${last}.`));
      times[(last = entityVersion)] = performance.now();
      if (last === total && --unfinished === 0) done.resolve();
    };
  });
  return withFeed(platform, Object.fromEntries(CONSUMERS.map((name, n) => [name, handlers[n]!])), async (append) => {
    isMeasuring = true;
    const beganMs = performance.now();
    const { usage } = await meter.measure([{ name: "feed", pid: process.pid }], async () => {
      const size = perSecond / BATCHES_PER_SECOND;
      for (let next = 1; next <= total; next += size) {
        await pause(beganMs + ((next - 1) / perSecond) * 1000 - performance.now());
        await append(Array.from({ length: size }, (_, n) => anEvent(next + n)));
        committedMs.fill(performance.now(), next, next + size);
      }
      await done.promise;
    });
    const lags = received.flatMap((times) =>
      [...times.subarray(1)].map((ms, n) => Math.max(0, ms - committedMs[n + 1]!)),
    );
    const lastMs = Math.max(...received.map((times) => times[total]!));
    return {
      what: `feed of ${perSecond.toLocaleString("en")} events/s, commit to consumer`,
      who: "millwright",
      perSecond: round(total / ((lastMs - beganMs) / 1000)),
      latencyMs: summarize(lags),
      cost: costPerOperation([usage], total),
    };
  });
}

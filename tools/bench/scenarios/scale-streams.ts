import { api, createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { residentKb } from "../memory.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { nowMs, StreamClients } from "../stream-clients.ts";
import { ProtocolWorker } from "../worker.ts";

const CLIENTS = [100, 1_000, 10_000];
const EVENTS = 10;
const QUICK_CLIENTS = [100, 1_000];
const WAIT_MS = 5_000;
const HEARTBEAT_MS = 10_000;

/**
 * Measures the delivery of a run's events to many clients of one gateway, one event at a time. Lag is the time from the
 * response to the worker that appended the event. Fails unless each client receives the exact sequence and its end.
 */
export async function measureScaleOfStreams(bench: Bench): Promise<Measured[]> {
  const rows: Measured[] = [];
  for (const count of bench.isQuick ? QUICK_CLIENTS : CLIENTS) rows.push(...(await measureClients(bench, count)));
  return rows;
}

async function measureClients({ platform, meter }: Bench, count: number): Promise<Measured[]> {
  const { url } = platform;
  const runUid = await createRun(url);
  const worker = await ProtocolWorker.register(url, await createWorkerKey(url), 1, `streams-${count}`);
  const [lease] = await worker.claim(1, WAIT_MS);
  if (lease?.runUid !== runUid) throw new Error("The queue has other runs: start with an empty platform.");
  await worker.heartbeat([lease]);
  let seq = await lastSeq(url, runUid);
  // Without a lease, appending fails.
  const heartbeats = setInterval(() => void worker.heartbeat([lease]).catch(() => undefined), HEARTBEAT_MS);
  const gateway = platform.processes().find(({ name }) => /^(gateway|platform)/.test(name))!;
  const beforeKb = residentKb(gateway.pid);
  const clients = new StreamClients(url, `/api/v1/agent/runs/${runUid}/events`, count);
  try {
    await clients.received(seq);
    const clientKb = (residentKb(gateway.pid) - beforeKb) / count;
    const all: number[] = [];
    const last: number[] = [];
    const { usage } = await meter.measure(serversOf(platform), async () => {
      for (let n = 1; n <= EVENTS; n++) {
        await worker.append(lease, n, 1);
        const appendedMs = nowMs();
        const lags = (await clients.received(++seq)).map((ms) => Math.max(0, ms - appendedMs));
        all.push(...lags);
        last.push(Math.max(...lags));
      }
    });
    await worker.complete([lease]);
    await clients.received(await lastSeq(url, runUid));
    await clients.ended();
    const to = `of ${count.toLocaleString("en")} clients of one run`;
    return [
      {
        what: `an event to each ${to}`,
        who: "millwright",
        latencyMs: summarize(all),
        cost: costPerOperation([usage], EVENTS * count),
        clientKb: round(clientKb),
      },
      { what: `an event to the last ${to}`, who: "millwright", latencyMs: summarize(last) },
    ];
  } finally {
    clearInterval(heartbeats);
    await clients.close();
  }
}

/** Returns the sequence number of the run's newest event. */
async function lastSeq(url: string, runUid: string): Promise<number> {
  const { events } = await api<{ events: { seq: number }[] }>(url, `/agent/runs/${runUid}/events?limit=500`);
  return events.at(-1)?.seq ?? 0;
}

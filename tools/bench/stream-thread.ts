// A thread with many clients of one event stream; see StreamClients. Raw sockets, so that the clients use less of the
// processor than the servers that are measured.
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { EventIds } from "./event-ids.ts";
import type { StreamReport, StreamRequest } from "./stream-clients.ts";

/** Clients whose responses have not begun. */
const OPENED_AT_A_TIME = 50;

const { url, path, headers, count } = workerData as StreamRequest;
const { hostname, port, host } = new URL(url);
const head = Object.entries({ host, accept: "text/event-stream", ...headers }).map(
  ([name, value]) => `${name}: ${value}`,
);
const request = `GET ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`;
const report = (message: StreamReport): void => parentPort!.postMessage(message);
/** When each client received an event, by its sequence number. */
const arrivals = new Map<number, number[]>();
let unopened = count;
let endedCount = 0;

await Promise.all(Array.from({ length: OPENED_AT_A_TIME }, openAll));

async function openAll(): Promise<void> {
  while (unopened-- > 0) await open();
}

/** Resolves at the first data. */
function open(): Promise<void> {
  const ids = new EventIds();
  return new Promise((resolve) => {
    const fail = (why: string): void => report({ failure: `A client failed after event ${ids.last}: ${why}` });
    const socket = connect(Number(port), hostname, () => socket.write(request))
      .setEncoding("latin1")
      .on("data", (text: unknown) => {
        resolve();
        try {
          receive(ids, String(text));
        } catch (error) {
          fail((error as Error).message);
        }
      })
      .on("error", (error) => fail(error.message))
      .on("close", () => ids.isEnded || fail("The connection was closed."));
  });
}

function receive(ids: EventIds, text: string): void {
  if (ids.isEnded) return; // the end of the chunked response
  const now = Number(process.hrtime.bigint()) / 1e6;
  const newCount = ids.take(text);
  for (let seq = ids.last - newCount + 1; seq <= ids.last; seq++) {
    const times = arrivals.get(seq) ?? [];
    arrivals.set(seq, times);
    if (times.push(now) < count) continue;
    report({ seq, arrivedMs: times });
    arrivals.delete(seq);
  }
  if (ids.isEnded && ++endedCount === count) report({ isEnded: true });
}

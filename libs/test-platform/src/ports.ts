import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ephemeral port ranges of Linux, macOS and Windows. */
const [FIRST, END] = [15_000, 32_000];

/**
 * Ports returned by this process. Of two test processes one uses odd and one even ports, so that neither takes a port
 * that the other is about to use.
 */
const taken = new Set<number>();
const SIDE = Number(process.env["JEST_WORKER_ID"] ?? 0) % 2;

/**
 * Returns a loopback port for a process that is killed and restarted at the same address. The port is outside the
 * ephemeral range, so the system does not assign it to another process in between.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = FIRST + 2 * Math.floor((Math.random() * (END - FIRST)) / 2) + SIDE;
    if (taken.has(port)) continue;
    taken.add(port);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    const listening = once(server, "listening");
    server.listen(port, "127.0.0.1");
    await listening;
    server.close();
    await once(server, "close");
    return true;
  } catch {
    return false;
  }
}

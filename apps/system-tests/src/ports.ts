import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that Linux, macOS and Windows hand out by themselves. */
const [FIRST, END] = [15_000, 32_000];

/** Handed out by this process. Two test processes take odd and even ones, so that neither takes what the other is about to use. */
const taken = new Set<number>();
const SIDE = Number(process.env["JEST_WORKER_ID"] ?? 0) % 2;

/**
 * A loopback port for a process that is to be killed and started again at the same address: meanwhile the system gives it to
 * nobody else, as it would one of those that it hands out itself.
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

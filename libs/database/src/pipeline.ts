import type { ClientBase } from "pg";
import type { Socket } from "node:net";

/**
 * Corks a connection until the end of the event-loop turn, so that its writes leave in one system call, which costs
 * more than building and parsing a statement.
 */
export function corkPerTurn(client: ClientBase): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

import type { ClientBase } from "pg";
import type { Socket } from "node:net";

/**
 * Lets everything that is written to a connection in this turn of the event loop leave in one piece: a system call costs
 * more than making and reading a statement.
 */
export function travelTogether(client: ClientBase): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

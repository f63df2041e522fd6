import { randomUUID } from "node:crypto";
import type { NatsConnection } from "nats";

/** Sends short-lived messages to the other replicas of a service. Delivery is not guaranteed, and nothing is stored. */
export type ReplicaBroadcast = {
  /** Sends JSON of at most a few kilobytes; does nothing while NATS is disconnected. */
  send(message: unknown): void;
  /** Calls `f` for each message of another replica. Returns a function that unsubscribes. */
  subscribe(f: (message: unknown) => void): () => void;
};

/** @param connected the connection while the server is reachable; a disconnected one would buffer messages in memory */
export function replicaBroadcast(
  service: string,
  topic: string,
  established: Promise<NatsConnection>,
  connected: () => NatsConnection | undefined,
): ReplicaBroadcast {
  const subject = `millwright-broadcast.${service}.${topic}`;
  const self = randomUUID();
  return {
    send(message) {
      connected()?.publish(subject, JSON.stringify({ from: self, message }));
    },
    subscribe(f) {
      const subscription = established.then((nats) =>
        nats.subscribe(subject, {
          callback(error, message) {
            const envelope = error === null ? parseEnvelope(message.string()) : undefined;
            if (envelope && envelope.from !== self) f(envelope.message);
          },
        }),
      );
      subscription.catch(() => {}); // logged where the connection is opened
      return () => void subscription.then((s) => s.unsubscribe()).catch(() => {});
    },
  };
}

/** Returns undefined for a message in an unknown format. */
function parseEnvelope(text: string): { from?: unknown; message?: unknown } | undefined {
  try {
    const envelope: unknown = JSON.parse(text);
    return typeof envelope === "object" && envelope !== null ? envelope : undefined;
  } catch {
    return undefined;
  }
}

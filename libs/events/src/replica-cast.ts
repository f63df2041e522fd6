import { randomUUID } from "node:crypto";
import type { NatsConnection } from "nats";

/** Tells the other replicas of a service something that is of use only now. Carries no promise, and stores nothing. */
export type ReplicaCast = {
  /** JSON, of some kilobytes at most; does nothing while NATS is away. */
  send(message: unknown): void;
  /** Calls `f` for each message of another replica. Returns how to stop. */
  listen(f: (message: unknown) => void): () => void;
};

/** @param connected the connection while the server is there; a disconnected one would gather messages in memory */
export function replicaCast(
  service: string,
  topic: string,
  established: Promise<NatsConnection>,
  connected: () => NatsConnection | undefined,
): ReplicaCast {
  const subject = `millwright-cast.${service}.${topic}`;
  const self = randomUUID();
  return {
    send(message) {
      connected()?.publish(subject, JSON.stringify({ from: self, message }));
    },
    listen(f) {
      const subscription = established.then((nats) =>
        nats.subscribe(subject, {
          callback(error, message) {
            const told = error === null ? parsed(message.string()) : undefined;
            if (told && told.from !== self) f(told.message);
          },
        }),
      );
      subscription.catch(() => {}); // logged where the connection is opened
      return () => void subscription.then((one) => one.unsubscribe()).catch(() => {});
    },
  };
}

/** Undefined for one of another version that is not understood. */
function parsed(text: string): { from?: unknown; message?: unknown } | undefined {
  try {
    const told: unknown = JSON.parse(text);
    return typeof told === "object" && told !== null ? told : undefined;
  } catch {
    return undefined;
  }
}

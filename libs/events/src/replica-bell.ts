import { randomUUID } from "node:crypto";
import type { NatsConnection } from "nats";

/** Rings at the other replicas of a service. Carries no promise: whoever waits also looks by itself. */
export type ReplicaBell = {
  /** Rings each topic at the others; does nothing while NATS is away. */
  ring(topics: Iterable<string>): void;
  /** Calls `f` for each topic that another replica rang. Returns how to stop. */
  listen(f: (topic: string) => void): () => void;
};

/**
 * The bell of one service's replicas over plain NATS, beside the public events: nothing is stored, and what is rung in one turn
 * of the event loop goes out as one message.
 *
 * @param connected the connection while the server is there; a disconnected one would gather messages in memory
 */
export function replicaBell(
  service: string,
  established: Promise<NatsConnection>,
  connected: () => NatsConnection | undefined,
): ReplicaBell {
  const subject = `millwright-bell.${service}`;
  const self = randomUUID();
  let rung = new Set<string>();
  const send = (): void => {
    connected()?.publish(subject, JSON.stringify({ from: self, topics: [...rung] }));
    rung = new Set();
  };
  return {
    ring(topics) {
      if (!connected()) return;
      for (const topic of topics) {
        if (rung.size === 0) setImmediate(send);
        rung.add(topic);
      }
    },
    listen(f) {
      const subscription = established.then((nats) =>
        nats.subscribe(subject, {
          callback(error, message) {
            if (error === null) for (const topic of topicsOfOthers(message.string(), self)) f(topic);
          },
        }),
      );
      subscription.catch(() => {}); // logged where the connection is opened
      return () => void subscription.then((s) => s.unsubscribe()).catch(() => {});
    },
  };
}

/** None for our own message, and for one of another version that is not understood. */
function topicsOfOthers(text: string, self: string): string[] {
  try {
    const { from, topics } = JSON.parse(text) as { from?: unknown; topics?: unknown };
    return from === self || !Array.isArray(topics) ? [] : topics.map(String);
  } catch {
    return [];
  }
}

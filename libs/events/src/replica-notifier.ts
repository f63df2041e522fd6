import { randomUUID } from "node:crypto";
import type { NatsConnection } from "nats";

/** Notifies the other replicas of a service. Delivery is not guaranteed: waiting callers also poll. */
export type ReplicaNotifier = {
  /** Notifies the other replicas of each topic; does nothing while NATS is disconnected. */
  notify(topics: Iterable<string>): void;
  /** Calls `f` for each topic that another replica notified. Returns a function that unsubscribes. */
  subscribe(f: (topic: string) => void): () => void;
};

/**
 * Returns the notifier of one service's replicas. It uses core NATS, apart from the public events: nothing is stored, and
 * the topics of one event-loop turn are sent as one message.
 *
 * @param connected the connection while the server is reachable; a disconnected one would buffer messages in memory
 */
export function replicaNotifier(
  service: string,
  established: Promise<NatsConnection>,
  connected: () => NatsConnection | undefined,
): ReplicaNotifier {
  const subject = `millwright-wakeup.${service}`;
  const self = randomUUID();
  let pending = new Set<string>();
  const send = (): void => {
    connected()?.publish(subject, JSON.stringify({ from: self, topics: [...pending] }));
    pending = new Set();
  };
  return {
    notify(topics) {
      if (!connected()) return;
      for (const topic of topics) {
        if (pending.size === 0) setImmediate(send);
        pending.add(topic);
      }
    },
    subscribe(f) {
      const subscription = established.then((nats) =>
        nats.subscribe(subject, {
          callback(error, message) {
            if (error === null) for (const topic of topicsFromOthers(message.string(), self)) f(topic);
          },
        }),
      );
      subscription.catch(() => {}); // logged where the connection is opened
      return () => void subscription.then((s) => s.unsubscribe()).catch(() => {});
    },
  };
}

/** Returns no topics for the replica's own message and for a message in an unknown format. */
function topicsFromOthers(text: string, self: string): string[] {
  try {
    const { from, topics } = JSON.parse(text) as { from?: unknown; topics?: unknown };
    return from === self || !Array.isArray(topics) ? [] : topics.map(String);
  } catch {
    return [];
  }
}

import { connect, Events } from "nats";
import type { NatsConnection } from "nats";
import type { Logger } from "@millwright/telemetry";
import { localWakeupBus, type WakeupBus } from "./wakeup-bus.ts";
import { replicaBroadcast, type ReplicaBroadcast } from "./replica-broadcast.ts";
import { replicaNotifier, type ReplicaNotifier } from "./replica-notifier.ts";

const RETRY_MS = 500;
const CONNECT_TIMEOUT_MS = 5000;

/** A connection to NATS that retries forever: the server may be absent at the start, for a while, or wiped. */
export class NatsLink {
  readonly #established: Promise<NatsConnection>;
  #connected: NatsConnection | undefined;

  private constructor(established: Promise<NatsConnection>) {
    this.#established = established;
    established.then((nats) => this.#follow(nats)).catch(() => {}); // logged in open
  }

  static open(url: string, name: string, log: Logger): NatsLink {
    const established = connect({
      servers: url,
      name,
      maxReconnectAttempts: -1,
      waitOnFirstConnect: true,
      reconnectTimeWait: RETRY_MS,
      timeout: CONNECT_TIMEOUT_MS,
      noAsyncTraces: true, // a stack trace per published event would cost more than sending it
    });
    established.catch((error: unknown) =>
      log.error({ component: "nats", error }, "NATS rejected the connection permanently; not retrying"),
    );
    return new NatsLink(established);
  }

  /** Waits for the first connection. */
  connection(): Promise<NatsConnection> {
    return this.#established;
  }

  /**
   * Returns the wake-up bus of services in several processes. The relays publish the wake-ups, so `notify` does
   * nothing. A process receives each event once, and only events of the types that it subscribes to.
   */
  wakeups(): WakeupBus {
    const local = localWakeupBus();
    const received = new Map<string, { subscribers: number; readonly end: () => void }>();
    const receive = (type: string): void => {
      const known = received.get(type) ?? { subscribers: 0, end: this.#subscribe(type, () => local.notify(type)) };
      known.subscribers += 1;
      received.set(type, known);
    };
    const release = (type: string): void => {
      const known = received.get(type);
      if (!known || --known.subscribers > 0) return;
      received.delete(type);
      known.end();
    };
    return {
      notify: () => {},
      subscribe(eventTypes, f) {
        const unsubscribe = local.subscribe(eventTypes, f);
        for (const type of eventTypes) receive(type);
        let isSubscribed = true;
        return () => {
          unsubscribe();
          if (isSubscribed) for (const type of eventTypes) release(type);
          isSubscribed = false;
        };
      },
    };
  }

  /** Returns the notifier between the replicas of a service. */
  replicaNotifier(service: string): ReplicaNotifier {
    return replicaNotifier(service, this.#established, () => this.#connected);
  }

  /** Returns the channel on which the replicas of a service broadcast messages about a topic. */
  replicaBroadcast(service: string, topic: string): ReplicaBroadcast {
    return replicaBroadcast(service, topic, this.#established, () => this.#connected);
  }

  /** Closes at once; unacknowledged messages are published again later. */
  async close(): Promise<void> {
    this.#connected = undefined;
    const pending = Symbol("pending");
    const nats = await Promise.race([this.#established.catch(() => undefined), Promise.resolve(pending)]);
    if (typeof nats === "object") await nats.close();
    else void this.#established.then((late) => late.close()).catch(() => {});
  }

  /** Calls `f` for each message of a subject. Returns a function that unsubscribes. */
  #subscribe(subject: string, f: () => void): () => void {
    const subscription = this.#established.then((nats) =>
      nats.subscribe(subject, { callback: (error) => error === null && f() }),
    );
    subscription.catch(() => {}); // logged in open
    return () => void subscription.then((s) => s.unsubscribe()).catch(() => {});
  }

  async #follow(nats: NatsConnection): Promise<void> {
    this.#connected = nats;
    for await (const { type } of nats.status()) {
      if (type === Events.Disconnect) this.#connected = undefined;
      if (type === Events.Reconnect) this.#connected = nats;
    }
    this.#connected = undefined;
  }
}

import { EventEmitter } from "node:events";

/** Wakes consumers of an event type when a log has grown by such events. Delivery is not guaranteed: consumers also poll. */
export type WakeupBus = {
  notify(eventType: string): void;
  /** Returns a function that unsubscribes. */
  subscribe(f: (eventType: string) => void): () => void;
};

/** Returns the bus of services that share a process. */
export function localWakeupBus(): WakeupBus {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    notify: (eventType) => void emitter.emit("notify", eventType),
    subscribe(f) {
      emitter.on("notify", f);
      return () => void emitter.off("notify", f);
    },
  };
}

import { EventEmitter } from "node:events";

/** Wakes consumers when a log has grown. Delivery is not guaranteed: consumers also poll. */
export type WakeupBus = {
  notify(entity: string): void;
  /** Returns a function that unsubscribes. */
  subscribe(f: (entity: string) => void): () => void;
};

/** Returns the bus of services that share a process. */
export function localWakeupBus(): WakeupBus {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    notify: (entity) => void emitter.emit("notify", entity),
    subscribe(f) {
      emitter.on("notify", f);
      return () => void emitter.off("notify", f);
    },
  };
}

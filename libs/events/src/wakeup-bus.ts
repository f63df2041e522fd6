import { EventEmitter } from "node:events";

/** Wakes consumers of an event type when a log has grown by such events. Delivery is not guaranteed: consumers also poll. */
export type WakeupBus = {
  notify(eventType: string): void;
  /** Calls `f` for events of these types only. Returns a function that unsubscribes. */
  subscribe(eventTypes: readonly string[], f: (eventType: string) => void): () => void;
};

/** Returns the bus of services that share a process. */
export function localWakeupBus(): WakeupBus {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    notify: (eventType) => void emitter.emit(eventType, eventType),
    subscribe(eventTypes, f) {
      for (const type of eventTypes) emitter.on(type, f);
      return () => {
        for (const type of eventTypes) emitter.off(type, f);
      };
    },
  };
}

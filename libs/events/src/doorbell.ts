import { EventEmitter } from "node:events";

/** Wakes consumers when a log has grown. Carries no promise: consumers also look by themselves. */
export type Doorbell = {
  ring(entity: string): void;
  /** Returns how to stop listening. */
  listen(f: (entity: string) => void): () => void;
};

/** The bell of services that share a process. */
export function localDoorbell(): Doorbell {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    ring: (entity) => void emitter.emit("ring", entity),
    listen(f) {
      emitter.on("ring", f);
      return () => void emitter.off("ring", f);
    },
  };
}

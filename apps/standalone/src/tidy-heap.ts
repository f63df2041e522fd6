import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** When what starts after the platform is ready has started, too. */
const AFTER_MS = 10_000;

/**
 * Gives back, once, what starting took: V8 would keep some hundred megabytes of it, because a platform at rest makes enough garbage not to be idle and too little
 * to be cleaned up after. Nothing else runs for the fifty milliseconds or so that it takes.
 */
export function tidyHeapLater(): void {
  setTimeout(() => {
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as (options: object) => void)({ type: "major", execution: "sync", flavor: "last-resort" });
  }, AFTER_MS).unref();
}

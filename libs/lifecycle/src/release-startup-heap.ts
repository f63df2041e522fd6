import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Milliseconds after which the background work of the start has finished too. */
const AFTER_MS = 10_000;

/**
 * Collects garbage once, to release the memory that the start used. V8 would retain some hundred megabytes of it: an
 * idle platform allocates too much to count as idle and too little to trigger a full collection. The collection blocks
 * the process for about 50 ms.
 */
export function releaseStartupHeap(): void {
  setTimeout(() => {
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as (options: object) => void)({ type: "major", execution: "sync", flavor: "last-resort" });
  }, AFTER_MS).unref();
}

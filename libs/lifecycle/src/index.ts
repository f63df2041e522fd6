export { Lifecycle, type Part, type Readiness } from "./lifecycle.ts";
export { releaseStartupHeap } from "./release-startup-heap.ts";
export { stopOnSignals } from "./signals.ts";

export { Lifecycle, type Part, type Readiness } from "./lifecycle.ts";
export { stopOnSignals } from "./signals.ts";

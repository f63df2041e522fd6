export { readConfig, type Env } from "./read-config.ts";
export { optional, required, type Setting } from "./settings.ts";
export { parseDuration } from "./duration.ts";

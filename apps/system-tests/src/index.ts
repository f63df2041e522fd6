export { Cluster } from "./cluster.ts";
export { OWNER_KEY, Platform, type PlatformOptions } from "./platform.ts";
export { killAll, processesWith, type RunningProcess } from "./processes.ts";
export { Program } from "./program.ts";

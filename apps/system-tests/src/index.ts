export { ClusterUnderFire, type Fuel } from "./cluster-under-fire.ts";
export { Cluster, SERVICES, type ClusterOptions, type ServiceName } from "./cluster.ts";
export { OWNER_KEY, type Deployment, type DeploymentOptions } from "./deployment.ts";
export { drill, type DrillOptions, type Report } from "./drill/drill.ts";
export { bareRepository, git } from "./git.ts";
export { Platform } from "./platform.ts";
export { killAll, processesWith, type RunningProcess } from "./processes.ts";
export { Program } from "./program.ts";

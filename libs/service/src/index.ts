export { listen, type HttpServer } from "./http-server.ts";
export { handleOperations, type Operations } from "./operations.ts";
export type { ServiceOptions } from "./service-options.ts";
export { runService } from "./run-service.ts";
export { upstreamFeed } from "./upstream-feed.ts";
export { watchService, type Watched } from "./watch-service.ts";
export {
  callerSettings,
  eventRetentionDays,
  PORT,
  serviceRules,
  serviceSettings,
  timeScale,
  upstreamSettings,
} from "./settings.ts";
export { readMasterKeys } from "./secrets.ts";
export { openRequest } from "./open-request.ts";

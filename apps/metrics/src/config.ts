import { readConfig, type Env } from "@millwright/config";
import { serviceRules, serviceSettings, timeScale, upstreamSettings } from "@millwright/service";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "orchestrator", "factories", "webhookIngress"),
  timeScale,
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, serviceRules);

import { optional, readConfig, type Env } from "@millwright/config";
import { serviceRules, serviceSettings, timeScale, upstreamSettings } from "@millwright/service";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "orchestrator", "factories"),
  slotDays: optional.int(
    "MILLWRIGHT_SLOT_RETENTION_DAYS",
    "Days for which schedules retain the outcome of their slots. A slot never fires twice, regardless of it.",
    { default: 90, max: 36_500 },
  ),
  timeScale,
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, serviceRules);

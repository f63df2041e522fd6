import { optional, readConfig, type Env } from "@millwright/config";
import { serviceRules, serviceSettings, timeScale, upstreamSettings } from "@millwright/service";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "orchestrator", "factories"),
  coolDownMs: optional.duration(
    "MILLWRIGHT_SCORING_COOL_DOWN",
    "Time for which a run must have been terminal before it is scored automatically.",
    { default: "30s" },
  ),
  trialsPerTeam: optional.int(
    "MILLWRIGHT_SCORING_TRIALS_PER_TEAM",
    "Maximum number of concurrent trials of one team over all its benchmark runs.",
    { default: 8, min: 1 },
  ),
  timeScale,
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, serviceRules);

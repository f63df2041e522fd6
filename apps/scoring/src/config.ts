import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";

/** Reads every environment variable of this service; libs/service has those of all services. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /**
     * RPC addresses of the gateway (identity), separated by commas, or a host name that resolves to several addresses.
     */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` on the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of the orchestrator. */
    orchestratorUrls: required.urls("ORCHESTRATOR_URL"),
    orchestratorJwksUrls: required.urls("ORCHESTRATOR_JWKS_URL"),
    /** RPC addresses of the factories service. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** Time for which a run must have been terminal before it is scored automatically. */
    coolDownMs: optional.duration("MILLWRIGHT_SCORING_COOL_DOWN", "30s"),
    /** Maximum number of concurrent trials of one team over all its benchmark runs. */
    trialsPerTeam: optional.int("MILLWRIGHT_SCORING_TRIALS_PER_TEAM", 8),
    /** Divisor of every wait time, for failure tests. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
  });

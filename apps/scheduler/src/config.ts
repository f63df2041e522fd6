import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";

/** Environment variables of this service; those that all services share are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity): a comma-separated list, or a DNS name with several addresses. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` on the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of the orchestrator. */
    orchestratorUrls: required.urls("ORCHESTRATOR_URL"),
    orchestratorJwksUrls: required.urls("ORCHESTRATOR_JWKS_URL"),
    /** RPC addresses of factories, whose automations also have schedules. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    slotDays: optional.int("MILLWRIGHT_SLOT_DAYS", 90),
    /** Divides every lease and wait, so that failure tests run faster. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
  });

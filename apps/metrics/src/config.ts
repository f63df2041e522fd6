import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";

/** Every environment variable of this service; those of all services are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity), separated by commas, or a name that resolves to many. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` of the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of the orchestrator. */
    orchestratorUrls: required.urls("ORCHESTRATOR_URL"),
    orchestratorJwksUrls: required.urls("ORCHESTRATOR_JWKS_URL"),
    /** RPC addresses of factories. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** RPC addresses of the webhook ingress. */
    webhookIngressUrls: required.urls("WEBHOOK_INGRESS_URL"),
    webhookIngressJwksUrls: required.urls("WEBHOOK_INGRESS_JWKS_URL"),
    /** Divides every wait; for tests of failures. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
  });

import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";

/** Every environment variable of this service; those of all services are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** The public port: `/webhooks/*`. */
    port: optional.int("PORT", 8081),
    /** Origin under which senders reach that port; default: the public URL. */
    webhookUrl: optional.url("MILLWRIGHT_WEBHOOK_URL"),
    /** Addresses and networks of proxies in front of it, with commas between: whose `X-Forwarded-For` names the sender. */
    trustedProxies: optional.list("MILLWRIGHT_TRUSTED_PROXIES", []),
    /** RPC addresses of the gateway (managed secrets), with commas between, or a name that stands for many. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` of the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of factories. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** RPC addresses of the metrics service, which calls this one. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
  });

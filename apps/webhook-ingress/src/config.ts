import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";

/** Environment variables of this service; those that all services share are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** The public port: `/webhooks/*`. */
    port: optional.int("PORT", 8081),
    /** Origin under which senders reach that port; default: the public URL. */
    webhookUrl: optional.url("MILLWRIGHT_WEBHOOK_URL"),
    /** Addresses and networks of trusted proxies, comma-separated: their `X-Forwarded-For` names the sender. */
    trustedProxies: optional.list("MILLWRIGHT_TRUSTED_PROXIES", []),
    /** RPC addresses of the gateway (managed secrets): a comma-separated list, or a DNS name with several addresses. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` on the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of factories. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** RPC addresses of the metrics service, which calls this one. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
  });

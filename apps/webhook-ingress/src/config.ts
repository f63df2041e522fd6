import { optional, readConfig, type Env } from "@millwright/config";
import { PORT, callerSettings, serviceRules, serviceSettings, upstreamSettings } from "@millwright/service";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "factories"),
  ...callerSettings("metrics"),
  port: optional.int("PORT", "The public port: `/webhooks/*`.", { ...PORT, default: 8081 }),
  webhookUrl: optional.url(
    "MILLWRIGHT_WEBHOOK_URL",
    "Origin under which senders of webhooks reach their port. Default: the public URL, whose `/webhooks/*` must then lead there.",
  ),
  trustedProxies: optional.list(
    "MILLWRIGHT_TRUSTED_PROXIES",
    "Addresses and networks of the proxies in front of the platform, whose `X-Forwarded-For` header is trusted for the sender address of a webhook.",
    { default: [] },
  ),
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, serviceRules);

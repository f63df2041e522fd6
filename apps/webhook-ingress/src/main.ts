import { runService } from "@millwright/service";
import { allowedServices, composeWebhookIngress, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";

await runService({
  name: "webhook-ingress",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
  }),
  callers: (config) => ({ metrics: { jwksUrls: config.metricsJwksUrls } }),
  migrationsDir,
  compose: async (config, base, { gateway, factories }) => {
    const ingress = composeWebhookIngress({
      ...base,
      upstreams: { identity: gateway, factories },
      webhookBase: config.webhookUrl ?? base.publicUrl,
      trustedProxies: config.trustedProxies,
    });
    return { ...ingress, allow: allowedServices, http: { port: config.port, listener: ingress.requestListener } };
  },
});

import { runService } from "@millwright/service";
import { allowedServices, composeMetrics, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";

await runService({
  name: "metrics",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    orchestrator: { urls: config.orchestratorUrls, jwksUrls: config.orchestratorJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
    "webhook-ingress": { urls: config.webhookIngressUrls, jwksUrls: config.webhookIngressJwksUrls },
  }),
  migrationsDir,
  compose: async ({ timeScale }, base, { gateway, orchestrator, factories, "webhook-ingress": webhookIngress }) => ({
    ...composeMetrics({
      ...base,
      upstreams: { identity: gateway, orchestrator, factories, webhookIngress },
      timeScale,
    }),
    allow: allowedServices,
  }),
});

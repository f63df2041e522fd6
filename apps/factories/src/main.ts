import { outboundRule } from "@millwright/outbound";
import { runService } from "@millwright/service";
import { allowedServices, composeFactories, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";

await runService({
  name: "factories",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    orchestrator: { urls: config.orchestratorUrls, jwksUrls: config.orchestratorJwksUrls },
    scheduler: { urls: config.schedulerUrls, jwksUrls: config.schedulerJwksUrls },
    scoring: { urls: config.scoringUrls, jwksUrls: config.scoringJwksUrls },
    "webhook-ingress": { urls: config.webhookIngressUrls, jwksUrls: config.webhookIngressJwksUrls },
  }),
  callers: (config) => ({ metrics: { jwksUrls: config.metricsJwksUrls } }),
  migrationsDir,
  compose: async (config, base, { gateway, orchestrator, scheduler, scoring, "webhook-ingress": webhookIngress }) => {
    const factories = await composeFactories({
      ...base,
      upstreams: { identity: gateway, orchestrator, scheduler, scoring, webhookIngress },
      outbound: outboundRule(config.allowedInternalHosts ?? []),
      localRepositoryRoots: config.localRepositoryRoots,
      gitCaFile: config.gitCaFile,
      headPollMs: config.headPollMs,
    });
    return { ...factories, allow: allowedServices };
  },
});

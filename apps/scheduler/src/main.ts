import { runService } from "@millwright/service";
import { allowedServices, composeScheduler, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";

await runService({
  name: "scheduler",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    orchestrator: { urls: config.orchestratorUrls, jwksUrls: config.orchestratorJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
  }),
  migrationsDir,
  compose: async (config, base, { gateway, orchestrator, factories }) => {
    const scheduler = composeScheduler({
      ...base,
      upstreams: { identity: gateway, orchestrator, factories },
      slotDays: config.slotDays,
      timeScale: config.timeScale,
    });
    return { ...scheduler, allow: allowedServices };
  },
});

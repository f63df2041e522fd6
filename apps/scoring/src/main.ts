import { runService } from "@millwright/service";
import { allowedServices, composeScoring, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";

await runService({
  name: "scoring",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    orchestrator: { urls: config.orchestratorUrls, jwksUrls: config.orchestratorJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
  }),
  migrationsDir,
  compose: async (config, base, { gateway, orchestrator, factories }) => {
    const { coolDownMs, trialsPerTeam, timeScale } = config;
    const scoring = composeScoring({
      ...base,
      upstreams: { identity: gateway, orchestrator, factories },
      coolDownMs,
      trialsPerTeam,
      timeScale,
    });
    return { ...scoring, allow: allowedServices };
  },
});

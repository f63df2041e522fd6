import { blobDirectory, directoryBlobs, openBucket } from "@millwright/blobs";
import { worker } from "@millwright/contracts";
import { outboundRule } from "@millwright/outbound";
import { runService } from "@millwright/service";
import { deriveKeys } from "@millwright/vault";
import { composeOrchestrator, migrationsDir, QUIET_METHODS } from "./compose.ts";
import { loadConfig } from "./config.ts";
import { platformProviders } from "./catalog/model-settings.ts";

await runService({
  name: "orchestrator",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    gateway: { urls: config.gatewayUrls, jwksUrls: config.gatewayJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
  }),
  callers: (config) => ({
    scheduler: { jwksUrls: config.schedulerJwksUrls },
    scoring: { jwksUrls: config.scoringJwksUrls },
    metrics: { jwksUrls: config.metricsJwksUrls },
  }),
  migrationsDir,
  compose: async (config, base, { gateway, factories }) => {
    const { localRepositoryRoots, timeScale, runTokenLimit, managedMcpServers, snapshotDays, modelAliases } = config;
    const dir = blobDirectory(config);
    const signing = {
      publicUrl: base.publicUrl,
      signingKey: deriveKeys(base, "blob urls")[0],
      clock: base.clock,
    };
    const blobs =
      dir === undefined ? openBucket(config.blobUrl!, config, base.clock) : directoryBlobs({ ...signing, dir });
    const models = { modelProviders: platformProviders(config), modelAliases, runTokenLimit, managedMcpServers };
    const replicas = base.nats && {
      replicas: base.nats.replicaNotifier("orchestrator"),
      liveTextBroadcast: base.nats.replicaBroadcast("orchestrator", "live-text"),
    };
    const orchestrator = await composeOrchestrator({
      ...base,
      ...replicas,
      ...models,
      upstreams: { identity: gateway, factories },
      blobs,
      outbound: outboundRule(config.allowedInternalHosts ?? []),
      localRepositoryRoots,
      timeScale,
      snapshotDays,
      runEventDays: config.runEventDays,
      artifactDays: config.artifactDays,
    });
    return {
      ...orchestrator,
      routes(router) {
        orchestrator.routes(router);
        orchestrator.workerRoutes(router);
      },
      open: [worker.WorkerService.typeName],
      quiet: QUIET_METHODS,
      publicKeys: orchestrator.runTokenJwks,
    };
  },
});

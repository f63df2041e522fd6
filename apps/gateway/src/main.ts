import { blobDirectory, directoryBlobs } from "@millwright/blobs";
import { worker } from "@millwright/contracts";
import { forwardService, mountHttp1, RemoteKeys } from "@millwright/rpc";
import { runService } from "@millwright/service";
import { deriveKeys } from "@millwright/vault";
import { composeGateway, migrationsDir } from "./compose.ts";
import { loadConfig } from "./config.ts";
import { signInOptions } from "./sign-in-settings.ts";

await runService({
  name: "gateway",
  env: process.env,
  loadConfig,
  upstreams: (config) => ({
    orchestrator: { urls: config.orchestratorUrls, jwksUrls: config.orchestratorJwksUrls },
    factories: { urls: config.factoriesUrls, jwksUrls: config.factoriesJwksUrls },
    scheduler: { urls: config.schedulerUrls, jwksUrls: config.schedulerJwksUrls },
    scoring: { urls: config.scoringUrls, jwksUrls: config.scoringJwksUrls },
    metrics: { urls: config.metricsUrls, jwksUrls: config.metricsJwksUrls },
    "webhook-ingress": { urls: config.webhookIngressUrls, jwksUrls: config.webhookIngressJwksUrls },
  }),
  migrationsDir,
  compose: async (
    config,
    base,
    { orchestrator, factories, scheduler, scoring, metrics, "webhook-ingress": webhookIngress },
  ) => {
    const [signingKey, ...acceptedKeys] = deriveKeys(base, "blob urls");
    const dir = blobDirectory(config);
    const store =
      dir === undefined ? undefined : directoryBlobs({ dir, publicUrl: base.publicUrl, signingKey, clock: base.clock });
    // Workers send their own keys, which the orchestrator verifies. The orchestrator also logs their calls.
    const quiet = worker.WorkerService.methods.map(({ name }) => `${worker.WorkerService.typeName}/${name}`);
    const workerServer = {
      service: "gateway",
      verifier: base.verifier,
      open: [worker.WorkerService.typeName],
      quiet,
      log: base.log,
      metrics: base.metrics,
    };
    const gateway = await composeGateway({
      ...base,
      upstreams: { orchestrator, factories, scheduler, scoring, metrics, webhookIngress },
      blobs: store && { store, signingKey, acceptedKeys },
      egressRanges: config.egressRanges,
      auditRetentionDays: config.auditRetentionDays,
      ...signInOptions(config, base.publicUrl),
      bootstrapApiKey: config.bootstrapApiKey,
      workerKey: config.workerKey,
      workerListener: mountHttp1(
        (router) => forwardService(router, worker.WorkerService, orchestrator),
        workerServer,
        "/rpc",
      ),
      runTokenKeys: new RemoteKeys({ owners: { "run-tokens": config.orchestratorJwksUrls } }),
    });
    return {
      routes: gateway.routes,
      allow: gateway.allow,
      http: { port: config.port, listener: gateway.requestListener },
      async start() {
        await gateway.bootstrap();
        await gateway.start();
      },
      stop: () => gateway.stop(),
      ready: () => gateway.ready(),
    };
  },
});

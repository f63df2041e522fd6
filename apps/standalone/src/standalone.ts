import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Lifecycle } from "@millwright/lifecycle";
import { answerOperations, listen } from "@millwright/service";
import { createLogger, Metrics, startTracing, type Logger } from "@millwright/telemetry";
import { loadOrCreateMasterKey } from "@millwright/vault";
import type { StandaloneConfig } from "./config.ts";
import { startDatabases, type Databases } from "./databases.ts";
import { logFile } from "./log-file.ts";
import { takeDirectory } from "./instance-lock.ts";
import { composeServices, type Services } from "./services.ts";
import { WorkerSupervisor, type WorkerSettings } from "./worker-supervisor.ts";

export type Standalone = {
  /** Origin of the public port as it listens. */
  readonly url: string;
  /** Known when it was given or has just been made. */
  readonly apiKey: string | undefined;
  readonly isFirstStart: boolean;
  stop(): Promise<void>;
};

/**
 * Starts the whole platform in this process, with its workers beside it. Answers when requests are served. Errors: whatever
 * kept a part from starting; everything started before is stopped again.
 */
export async function startStandalone(config: StandaloneConfig): Promise<Standalone> {
  await mkdir(join(config.dataDir, "logs"), { recursive: true, mode: 0o700 });
  const giveBack = takeDirectory(config.dataDir);
  const log = openLog(config);
  const metrics = new Metrics({ processMetrics: true });
  const tracing = await startTracing(config.tracing, { log, metrics });
  const server = await listen(config.host, config.port); // first, so that a taken port is said before anything else happens
  const url = `http://${config.host}:${server.port}`;
  const publicUrl = config.publicUrl ?? url;
  const masterKey = loadOrCreateMasterKey(join(config.dataDir, "master.key"));

  let databases: Databases | undefined;
  let services: Services | undefined;
  let workers: WorkerSupervisor | undefined;
  const lifecycle = new Lifecycle();
  lifecycle
    .add("data directory", { stop: giveBack })
    .add("tracing", { stop: () => tracing.stop() })
    .add("database", {
      start: async () => void (databases = await startDatabases(config, log)),
      stop: () => databases?.stop(),
    })
    .add("services", {
      start: async () => {
        services = await composeServices({ config, databases: databases!, masterKey, publicUrl, log, metrics, tracing });
        await services.start();
      },
      stop: () => services?.stop(),
      ready: () => services?.ready() ?? false,
    })
    .add("public port", {
      start: () => server.serve(answerOperations({ lifecycle, metrics, others: services!.requestListener })),
      stop: () => server.stop(),
    })
    .add("workers", {
      start: () => {
        workers = new WorkerSupervisor(workerSettings(config, url, services!.bootstrap.workerKey), log, (text) => void process.stderr.write(`${text}\n`));
        workers.start();
      },
      stop: () => workers?.stop(),
    });
  try {
    await lifecycle.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    url: publicUrl,
    apiKey: services!.bootstrap.apiKey ?? config.bootstrapApiKey,
    isFirstStart: services!.bootstrap.apiKey !== undefined,
    stop: async () => void (await lifecycle.stop()),
  };
}

const workerSettings = (config: StandaloneConfig, url: string, workerKey: string): WorkerSettings => ({
  url,
  workerKey,
  name: config.workerName,
  count: config.workers,
  slots: config.workerSlots,
  sandbox: config.sandbox,
  dir: join(config.dataDir, "workers"),
  env: config.workerEnvironment,
});

function openLog(config: StandaloneConfig): Logger {
  const level = config.logLevel as "info";
  if (config.log === "-") return createLogger({ service: "standalone", level });
  return createLogger({ service: "standalone", level, destination: logFile(config.log || join(config.dataDir, "logs", "millwright.log")) });
}

import { join } from "node:path";
import { Lifecycle } from "@millwright/lifecycle";
import { handleOperations, listen } from "@millwright/service";
import { createLogger, Metrics, startTracing, type Logger } from "@millwright/telemetry";
import type { StandaloneConfig } from "./config.ts";
import { prepareDataDirectory } from "./data-directory.ts";
import { startDatabases, type Databases } from "./databases.ts";
import { logFile } from "./log-file.ts";
import { rotateLogs } from "./log-rotation.ts";
import { lockDataDirectory } from "./instance-lock.ts";
import { hasPlatform, openMasterKeys } from "./master-key.ts";
import { composeServices, type Services } from "./services.ts";
import { StartupWarnings } from "./startup-warnings.ts";
import { workerLog, WorkerSupervisor, type WorkerSettings } from "./worker-supervisor.ts";

export type Standalone = {
  /** Origin of the public port. */
  readonly url: string;
  /** Set if it was configured or was created by this start. */
  readonly apiKey: string | undefined;
  readonly isFirstStart: boolean;
  /** Signs the owner in once, within 30 minutes. Set if this start created the owner's key. */
  readonly signInUrl: string | undefined;
  /** Returns the URL of a service's database. */
  readonly databaseUrl: (service: string) => string;
  stop(): Promise<void>;
};

/**
 * Starts the whole platform in this process, and its workers as child processes. Resolves when requests are served.
 * Errors: those of the first part that fails to start; all parts started before are stopped.
 */
export async function startStandalone(config: StandaloneConfig): Promise<Standalone> {
  const isExisting = hasPlatform(config.dataDir);
  prepareDataDirectory(config.dataDir);
  const unlock = lockDataDirectory(config.dataDir);
  const masterKeys = openMasterKeys(config.dataDir, isExisting);
  const { log, started } = openLog(config);
  const metrics = new Metrics({ processMetrics: true });
  const tracing = await startTracing(config.tracing, { log, metrics });
  // first, so that a port in use is reported before anything is started
  const server = await listen(config.host, config.port);
  const url = originOf(config.host, server.port);
  const publicUrl = config.publicUrl ?? url;

  let databases: Databases | undefined;
  let services: Services | undefined;
  let workers: WorkerSupervisor | undefined;
  let stopRotation: (() => void) | undefined;
  const lifecycle = new Lifecycle();
  lifecycle
    .add("data directory", { stop: unlock })
    .add("log rotation", {
      start: () => void (stopRotation = rotateLogs(logFiles(config), log)),
      stop: () => stopRotation?.(),
    })
    .add("tracing", { stop: () => tracing.stop() })
    .add("database", {
      start: async () => void (databases = await startDatabases(config, log)),
      stop: () => databases?.stop(),
    })
    .add("services", {
      start: async () => {
        services = await composeServices({
          config,
          databases: databases!,
          masterKeys,
          publicUrl,
          log,
          metrics,
          tracing,
        });
        await services.start();
      },
      stop: () => services?.stop(),
      ready: () => services?.ready() ?? false,
    })
    .add("public port", {
      start: () => server.serve(handleOperations({ lifecycle, others: services!.requestListener })),
      stop: () => server.stop(),
    })
    .add("workers", {
      start: () => {
        workers = new WorkerSupervisor(workerSettings(config, url, services!.bootstrap.workerKey), log, printWarning);
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
  started();
  const { signInToken } = services!.bootstrap;
  return {
    url: publicUrl,
    signInUrl: signInToken === undefined ? undefined : `${publicUrl}/session/link/${signInToken}`,
    apiKey: services!.bootstrap.apiKey ?? config.bootstrapApiKey,
    isFirstStart: services!.bootstrap.apiKey !== undefined,
    databaseUrl: (service) => databases!.url(service),
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

/**
 * Returns an origin that a browser on this machine can open. If the platform listens on all addresses, this is the
 * loopback address.
 */
export function originOf(host: string, port: number): string {
  const opened =
    ({ "": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1" } as Readonly<Record<string, string>>)[host] ?? host;
  return `http://${opened.includes(":") ? `[${opened}]` : opened}:${port}`;
}

/** Returns the path of the log; "-" is standard output. */
const logDestination = ({ log, dataDir }: StandaloneConfig): string => log || join(dataDir, "logs", "millwright.log");

/** Returns all logs that grow while the platform runs. */
function logFiles(config: StandaloneConfig): string[] {
  const workerLogs = Array.from({ length: config.workers }, (_, index) =>
    workerLog(join(config.dataDir, "workers"), index),
  );
  return [logDestination(config), join(config.dataDir, "postgres", "postgres.log"), ...workerLogs];
}

/** Opens the log. `started` ends the copying of warnings to the console. */
function openLog(config: StandaloneConfig): { log: Logger; started: () => void } {
  const options = { service: "standalone", level: config.logLevel as "info" };
  const path = logDestination(config);
  if (path === "-") return { log: createLogger(options), started: () => {} };
  const destination = new StartupWarnings(logFile(path), printWarning);
  return { log: createLogger({ ...options, destination }), started: () => destination.started() };
}

const printWarning = (line: string): void => void process.stderr.write(`${line}\n`);

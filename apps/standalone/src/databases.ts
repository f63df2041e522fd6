import { totalmem } from "node:os";
import { join } from "node:path";
import { EmbeddedPostgres, ensureDatabase, migrate, type EmbeddedPostgresOptions } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import type { StandaloneConfig } from "./config.ts";

const CHECK_EVERY_MS = 1_000;

/** Pool size of each service; small, because all services share one server. */
export const POOL_SIZE = 10;

export type Databases = { url(service: string): string; stop(): Promise<void> };

/** Starts the embedded PostgreSQL, adopts its running server, or uses the external one. */
export async function startDatabases(config: StandaloneConfig, log: Logger): Promise<Databases> {
  if (config.databaseUrl) {
    const server = config.databaseUrl;
    return { url: (service) => databaseUrl(server, service), stop: async () => {} };
  }
  return runEmbedded(
    { dataDir: join(config.dataDir, "postgres"), settings: { shared_buffers: `${sharedBuffersMb()}MB` } },
    log,
  );
}

/**
 * Starts an embedded server and restarts it at the same address if its process dies. No other supervisor would restart
 * it.
 */
async function runEmbedded(options: EmbeddedPostgresOptions, log: Logger): Promise<Databases> {
  let server = await EmbeddedPostgres.start(options);
  let starting: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (starting || server.isAlive) return;
    log.error({}, "PostgreSQL has stopped; starting it again");
    starting = EmbeddedPostgres.start({ ...options, port: server.port, requiresSocket: server.hasSocket })
      .then(
        (next) => void (server = next),
        (error: unknown) => log.error({ error }, "PostgreSQL does not start"),
      ) // retried at the next check
      .finally(() => (starting = undefined));
  }, CHECK_EVERY_MS).unref();
  return {
    url: (service) => server.localUrl(databaseName(service)),
    async stop() {
      clearInterval(timer);
      await starting;
      await server.stop();
    },
  };
}

/**
 * Returns the size of PostgreSQL's page cache in MB: an eighth of the memory, at least PostgreSQL's default of 128 MB
 * and at most 1024 MB, which a million runs need. The memory is only used as pages are read.
 */
function sharedBuffersMb(): number {
  const mb = Math.min(totalmem(), process.constrainedMemory() || Infinity) / 2 ** 20;
  return Math.round(Math.min(1024, Math.max(128, mb / 8)));
}

/** Creates a service's database if it is missing, applies its migrations and returns its URL. */
export async function prepareDatabase(databases: Databases, service: string, migrationsDir: string): Promise<string> {
  const url = databases.url(service);
  const admin = new URL(url);
  admin.pathname = "/postgres";
  await ensureDatabase(admin.href, databaseName(service)).catch((cause: Error) => {
    const server = decodeURIComponent(admin.host); // the directory of a Unix socket is encoded
    throw new Error(`The PostgreSQL server at ${server} cannot be used: ${cause.message}`, { cause });
  });
  await migrate(url, migrationsDir);
  return url;
}

const databaseName = (service: string): string => `millwright_${service}`;

function databaseUrl(server: string, service: string): string {
  const url = new URL(server);
  url.pathname = `/${databaseName(service)}`;
  return url.href;
}

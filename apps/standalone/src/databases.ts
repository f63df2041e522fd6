import { totalmem } from "node:os";
import { join } from "node:path";
import { EmbeddedPostgres, ensureDatabase, migrate, type EmbeddedPostgresOptions } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import type { StandaloneConfig } from "./config.ts";

const LOOK_EVERY_MS = 1_000;

/** Connections of each service's pool; small, because all services share one server. */
export const POOL_SIZE = 10;

export type Databases = { url(service: string): string; stop(): Promise<void> };

/** Starts (or adopts) the embedded PostgreSQL, or takes the external one. */
export async function startDatabases(config: StandaloneConfig, log: Logger): Promise<Databases> {
  if (config.databaseUrl) {
    const server = config.databaseUrl;
    return { url: (service) => databaseUrl(server, service), stop: async () => {} };
  }
  return keepEmbedded(
    { dataDir: join(config.dataDir, "postgres"), settings: { shared_buffers: `${sharedBuffersMb()}MB` } },
    log,
  );
}

/** An embedded server that is started again, at the same address, when its process is gone: nobody else would. */
async function keepEmbedded(options: EmbeddedPostgresOptions, log: Logger): Promise<Databases> {
  let server = await EmbeddedPostgres.start(options);
  let starting: Promise<void> | undefined;
  const look = setInterval(() => {
    if (starting || server.isAlive) return;
    log.error({}, "PostgreSQL is gone, and is started again");
    starting = EmbeddedPostgres.start({ ...options, port: server.port })
      .then(
        (next) => void (server = next),
        (error: unknown) => log.error({ error }, "PostgreSQL does not start"),
      ) // the next look tries again
      .finally(() => (starting = undefined));
  }, LOOK_EVERY_MS).unref();
  return {
    url: (service) => server.url(databaseName(service)),
    async stop() {
      clearInterval(look);
      await starting;
      await server.stop();
    },
  };
}

/**
 * Pages that PostgreSQL keeps itself: an eighth of the memory, within what it has by default and what a million runs are. Memory is taken only as
 * pages are read.
 */
function sharedBuffersMb(): number {
  const mb = Math.min(totalmem(), process.constrainedMemory() || Infinity) / 2 ** 20;
  return Math.round(Math.min(1024, Math.max(128, mb / 8)));
}

/** Creates a service's database when it is missing and brings it up to date. */
export async function prepareDatabase(databases: Databases, service: string, migrationsDir: string): Promise<string> {
  const url = databases.url(service);
  const admin = new URL(url);
  admin.pathname = "/postgres";
  await ensureDatabase(admin.href, databaseName(service)).catch((cause: Error) => {
    throw new Error(`The PostgreSQL server at ${admin.host} cannot be used: ${cause.message}`, { cause });
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

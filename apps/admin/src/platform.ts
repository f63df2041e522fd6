import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { withServer } from "./servers.ts";

const APPS = join(import.meta.dirname, "../..");

/** Returns the directory of a service's migrations. */
export const migrationsOf = (app: string): string => join(APPS, app, "prisma/migrations");

/** Returns the names of the services, each with a database of its own. */
export const servicesWithDatabase = (): string[] => readdirSync(APPS).filter((app) => existsSync(migrationsOf(app)));

/** Returns the data directory of a standalone platform. */
export const dataDirectoryOf = (env: NodeJS.ProcessEnv): string => resolve(env["MILLWRIGHT_DATA_DIR"] ?? ".millwright");

/** Returns whether a standalone platform with an embedded database was started in the data directory. */
export const hasEmbeddedServer = (env: NodeJS.ProcessEnv): boolean =>
  existsSync(join(dataDirectoryOf(env), "postgres/cluster/PG_VERSION"));

/** The databases of all services, by service. */
export type PlatformDatabases = Readonly<Record<string, string>>;

/**
 * Calls `f` with the databases of all services: those that `<SERVICE>_DATABASE_URL` name, and otherwise those on the
 * platform's server. Throws if there is no platform, because the server of an empty directory would be created.
 */
export async function withPlatform<T>(
  env: NodeJS.ProcessEnv,
  f: (databases: PlatformDatabases) => Promise<T>,
): Promise<T> {
  const services = servicesWithDatabase();
  const named = services.map((service) => [service, env[variableOf(service)]] as const);
  const missing = named.filter(([, url]) => !url);
  if (missing.length === 0) return f(Object.fromEntries(named) as PlatformDatabases);
  if (missing.length < named.length)
    throw new Error(`Set ${missing.map(([service]) => variableOf(service)).join(", ")} too, or none of them.`);
  requirePlatform(env, "<SERVICE>_DATABASE_URL");
  return withServer(env, (server) =>
    f(Object.fromEntries(services.map((service) => [service, new URL(`/millwright_${service}`, server).href]))),
  );
}

const variableOf = (service: string): string => `${service.toUpperCase().replaceAll("-", "_")}_DATABASE_URL`;

/** Throws unless the environment names a database server or the data directory contains one. */
export function requirePlatform(env: NodeJS.ProcessEnv, databaseVariable: string): void {
  if (!env["MILLWRIGHT_DATABASE_URL"] && !hasEmbeddedServer(env))
    throw new Error(
      `There is no platform in ${dataDirectoryOf(env)}: set MILLWRIGHT_DATA_DIR, MILLWRIGHT_DATABASE_URL or ${databaseVariable}.`,
    );
}

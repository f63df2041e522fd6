import { resolve } from "node:path";
import { EmbeddedPostgres } from "@millwright/database";

/**
 * Calls `f` with the address of the platform's server: that of MILLWRIGHT_DATABASE_URL, otherwise the embedded one of
 * MILLWRIGHT_DATA_DIR, which is started for the call unless it runs.
 */
export async function withServer<T>(env: NodeJS.ProcessEnv, f: (server: string) => Promise<T>): Promise<T> {
  const server = env["MILLWRIGHT_DATABASE_URL"];
  if (server) return f(server);
  const embedded = await EmbeddedPostgres.start({
    dataDir: resolve(env["MILLWRIGHT_DATA_DIR"] ?? ".millwright", "postgres"),
  });
  try {
    return await f(embedded.url("postgres"));
  } finally {
    if (!embedded.isAdopted) await embedded.stop();
  }
}

/** Calls `f` with the address of an app's database: DATABASE_URL, otherwise that on the platform's server. */
export async function withDatabase<T>(env: NodeJS.ProcessEnv, app: string, f: (url: string) => Promise<T>): Promise<T> {
  const { DATABASE_URL: url } = env;
  return url ? f(url) : withServer(env, (server) => f(new URL(`/millwright_${app}`, server).href));
}

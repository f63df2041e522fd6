// Where the databases of a platform are, for commands beside it: with MILLWRIGHT_DATABASE_URL `millwright_<app>` on that server, otherwise on the
// embedded server of MILLWRIGHT_DATA_DIR, which is started for the command unless it runs.
import { resolve } from "node:path";
import { EmbeddedPostgres } from "@millwright/database";

/** Does something with the server's address, and ends what it has started. */
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

// npm run owner-key [-- EMAIL]: prints another key of the platform's first administrator, or of the person, who has lost theirs. Good at once, whether the platform
// runs or not. With DATABASE_URL: the gateway's own database; otherwise that on the platform's server.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemClock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { IdentityDb } from "../../apps/gateway/src/store/identity-db.ts";
import { issueOwnerKey } from "../../apps/gateway/src/usecases/issue-owner-key.ts";
import { withServer } from "./servers.ts";

async function issueIn(url: string, email: string | undefined): Promise<string> {
  const database = Database.open(url, { max: 1, applicationName: "owner-key" });
  try {
    return await issueOwnerKey({ db: new IdentityDb(database), clock: systemClock }, email);
  } finally {
    await database.close();
  }
}

async function main(env: NodeJS.ProcessEnv, email: string | undefined): Promise<string> {
  if (env["DATABASE_URL"]) return issueIn(env["DATABASE_URL"], email);
  const dir = resolve(env["MILLWRIGHT_DATA_DIR"] ?? ".millwright");
  if (!env["MILLWRIGHT_DATABASE_URL"] && !existsSync(join(dir, "postgres/cluster/PG_VERSION")))
    throw new Error(
      `There is no platform in ${dir}: set MILLWRIGHT_DATA_DIR, MILLWRIGHT_DATABASE_URL or DATABASE_URL.`,
    );
  return withServer(env, (server) => {
    const url = new URL(server);
    url.pathname = "/millwright_gateway";
    return issueIn(url.href, email);
  });
}

try {
  process.stdout.write(`${await main(process.env, process.argv[2])}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

// npm run migrate [-- <app>…]: creates and migrates the database of each app that has migrations, or of those named, on the platform's server.
// With DATABASE_URL: the one database of the one app named.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ensureDatabase, migrate } from "@millwright/database";
import { withServer } from "./servers.ts";

const root = join(import.meta.dirname, "../..");
const migrationsOf = (app: string): string => join(root, "apps", app, "prisma/migrations");
const known = readdirSync(join(root, "apps")).filter((app) => existsSync(migrationsOf(app)));

async function main(names: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`No migrations for ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
  const apps = names.length > 0 ? names : known;
  if (env["DATABASE_URL"]) {
    const [app, ...others] = names;
    if (!app || others.length > 0)
      throw new Error("DATABASE_URL is one app's database: name the app (npm run migrate -- <app>).");
    return bringUpToDate(app, env["DATABASE_URL"]);
  }
  await withServer(env, (server) => bringAllUpToDate(apps, server));
}

async function bringAllUpToDate(apps: string[], server: string): Promise<void> {
  const admin = new URL(server);
  admin.pathname = "/postgres";
  for (const app of apps) await bringUpToDate(app, await ensureDatabase(admin.href, `millwright_${app}`));
}

async function bringUpToDate(app: string, url: string): Promise<void> {
  const applied = await migrate(url, migrationsOf(app));
  process.stdout.write(`${app}: ${applied.length === 0 ? "up to date" : `applied ${applied.join(", ")}`}\n`);
}

try {
  await main(process.argv.slice(2), process.env);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

// npm run migrate [-- <app>…]: creates and migrates the database of each app that has migrations, or of those named.
// With DATABASE_URL: the one database of the one app named. With MILLWRIGHT_DATABASE_URL: `millwright_<app>` on that
// server. Otherwise: on the embedded server of MILLWRIGHT_DATA_DIR, which is started for it unless it runs.
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { EmbeddedPostgres, ensureDatabase, migrate } from "@millwright/database";

const root = join(import.meta.dirname, "../..");
const migrationsOf = (app: string): string => join(root, "apps", app, "prisma/migrations");
const known = readdirSync(join(root, "apps")).filter((app) => existsSync(migrationsOf(app)));

async function main(names: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`No migrations for ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
  const apps = names.length > 0 ? names : known;
  if (env["DATABASE_URL"]) {
    const [app, ...others] = names;
    if (!app || others.length > 0) throw new Error("DATABASE_URL is one app's database: name the app (npm run migrate -- <app>).");
    return bringUpToDate(app, env["DATABASE_URL"]);
  }
  const server = env["MILLWRIGHT_DATABASE_URL"];
  if (server) return bringAllUpToDate(apps, server);
  const embedded = await EmbeddedPostgres.start({ dataDir: resolve(env["MILLWRIGHT_DATA_DIR"] ?? ".millwright", "postgres") });
  try {
    await bringAllUpToDate(apps, embedded.url("postgres"));
  } finally {
    if (!embedded.isAdopted) await embedded.stop();
  }
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

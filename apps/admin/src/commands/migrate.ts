import { ensureDatabase, migrate as applyMigrations } from "@millwright/database";
import { UsageError, type Admin, type Command } from "../command.ts";
import { migrationsOf, servicesWithDatabase } from "../platform.ts";
import { withServer } from "../servers.ts";

export const migrate: Command = {
  words: "migrate",
  needsOneDatabase: true,
  args: ["[APP...]"],
  summary: "Creates and migrates the database of every app that has migrations, or of those named.",
  details: ["DATABASE_URL: the database of the one app named. The services migrate their databases at start, too."],
  async run(admin, names) {
    const known = servicesWithDatabase();
    const unknown = names.filter((name) => !known.includes(name));
    if (unknown.length > 0)
      throw new UsageError(`No migrations for ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
    const { DATABASE_URL: url } = admin.env;
    if (!url) return withServer(admin.env, (server) => migrateAll(admin, names.length > 0 ? names : known, server));
    const [app, ...others] = names;
    if (app === undefined || others.length > 0)
      throw new UsageError("DATABASE_URL is one app's database: name that app (millwright-admin migrate APP).");
    await migrateOne(admin, app, url);
  },
};

async function migrateAll(admin: Admin, names: readonly string[], server: string): Promise<void> {
  const maintenance = new URL("/postgres", server).href;
  for (const app of names) await migrateOne(admin, app, await ensureDatabase(maintenance, `millwright_${app}`));
}

async function migrateOne({ print }: Admin, app: string, url: string): Promise<void> {
  const applied = await applyMigrations(url, migrationsOf(app));
  print(`${app}: ${applied.length === 0 ? "up to date" : `applied ${applied.join(", ")}`}`);
}

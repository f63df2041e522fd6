import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemClock } from "@millwright/clock";
import { createOwnerKey } from "@millwright/gateway/compose";
import type { Command } from "../command.ts";
import { withDatabase } from "../servers.ts";

export const ownerKey: Command = {
  words: "owner-key",
  args: ["[EMAIL]"],
  summary: "Prints another API key of the first platform administrator, or of a person who has lost theirs.",
  details: ["The key is valid at once, whether the platform runs or not. DATABASE_URL: the gateway's database."],
  async run({ env, print }, [email]) {
    requirePlatform(env);
    print(await withDatabase(env, "gateway", (url) => createOwnerKey(url, systemClock, email)));
  },
};

/** Without this, a wrong directory would get an empty server. */
function requirePlatform(env: NodeJS.ProcessEnv): void {
  const dir = resolve(env["MILLWRIGHT_DATA_DIR"] ?? ".millwright");
  const isNamed = env["DATABASE_URL"] || env["MILLWRIGHT_DATABASE_URL"];
  if (!isNamed && !existsSync(join(dir, "postgres/cluster/PG_VERSION")))
    throw new Error(
      `There is no platform in ${dir}: set MILLWRIGHT_DATA_DIR, MILLWRIGHT_DATABASE_URL or DATABASE_URL.`,
    );
}

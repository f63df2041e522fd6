import { systemClock } from "@millwright/clock";
import { createOwnerKey } from "@millwright/gateway/compose";
import type { Command } from "../command.ts";
import { requirePlatform } from "../platform.ts";
import { withDatabase } from "../servers.ts";

export const ownerKey: Command = {
  words: "owner-key",
  needsOneDatabase: true,
  args: ["[EMAIL]"],
  summary: "Prints another API key of the first platform administrator, or of a person who has lost theirs.",
  details: ["The key is valid at once, whether the platform runs or not. DATABASE_URL: the gateway's database."],
  async run({ env, print }, [email]) {
    if (!env["DATABASE_URL"]) requirePlatform(env, "DATABASE_URL");
    print(await withDatabase(env, "gateway", (url) => createOwnerKey(url, systemClock, email)));
  },
};

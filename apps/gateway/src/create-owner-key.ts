import type { Clock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { IdentityDb } from "./store/identity-db.ts";
import { issueOwnerKey } from "./usecases/issue-owner-key.ts";

/** Creates a key as `issueOwnerKey` does, in the gateway's database, whether the platform runs or not. Returns the key. */
export async function createOwnerKey(databaseUrl: string, clock: Clock, email?: string): Promise<string> {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "owner-key" });
  try {
    return await issueOwnerKey({ db: new IdentityDb(database), clock }, email);
  } finally {
    await database.close();
  }
}

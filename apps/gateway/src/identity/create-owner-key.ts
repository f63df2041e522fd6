import type { Clock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { IdentityDb } from "./store/identity-db.ts";
import { issueOwnerKey } from "./usecases/issue-owner-key.ts";

/**
 * Creates a key as `issueOwnerKey` does, directly in the gateway's database, so the platform need not be running.
 * Returns the key.
 */
export async function createOwnerKey(databaseUrl: string, clock: Clock, email?: string): Promise<string> {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "owner-key" });
  try {
    return await issueOwnerKey({ db: new IdentityDb(database), clock }, email);
  } finally {
    await database.close();
  }
}

import type { Clock } from "@millwright/clock";
import { Database, type Sql } from "@millwright/database";
import { lockFactories } from "../store/factory-lock.ts";
import { projectPullRequests } from "../store/project-pull-requests.ts";
import {
  clearPullRequests,
  hashReadModels,
  listFactories,
  markRunsOfFactory,
  rebuildSums,
} from "../store/rebuild-store.ts";
import { shareTrees } from "../store/share-store.ts";

/** `changed`: the read models whose rows were not those that the facts make. */
export type RebuiltFactory = { readonly factoryUid: string; readonly changed: readonly string[] };

/**
 * Throws the read models of every factory away and makes them again from the stored facts, and has the service read the facts of all runs again.
 * One transaction per factory: the service serves the old rows until it commits, and stores new facts of that factory afterwards.
 */
export async function rebuildReadModels(databaseUrl: string, clock: Clock): Promise<RebuiltFactory[]> {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "rebuild metrics" });
  try {
    const rebuilt: RebuiltFactory[] = [];
    for (const factoryUid of await listFactories(database.sql)) {
      rebuilt.push({
        factoryUid,
        changed: await database.transaction((tx) => rebuildFactory(tx, factoryUid, clock.now())),
      });
    }
    return rebuilt;
  } finally {
    await database.close();
  }
}

async function rebuildFactory(tx: Sql, factoryUid: string, now: Date): Promise<string[]> {
  await lockFactories(tx, [factoryUid]);
  const before = await hashReadModels(tx, factoryUid);
  await rebuildSums(tx, factoryUid);
  const { rootRunUids, urlKeys } = await clearPullRequests(tx, factoryUid);
  await shareTrees(tx, rootRunUids);
  await projectPullRequests(tx, factoryUid, urlKeys);
  await markRunsOfFactory(tx, factoryUid, now);
  const after = await hashReadModels(tx, factoryUid);
  return [...after.keys()].filter((table) => after.get(table) !== before.get(table));
}

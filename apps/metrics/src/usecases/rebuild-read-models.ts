import type { Clock } from "@millwright/clock";
import { Database, type Sql } from "@millwright/database";
import { lockFactories } from "../store/factory-lock.ts";
import { projectPullRequests } from "../store/project-pull-requests.ts";
import {
  clearPullRequests,
  hashReadModels,
  listFactories,
  rebuildSums,
  type FactoryOfTeam,
} from "../store/rebuild-store.ts";
import {
  countPullRequestsRecordedBefore,
  countUnreadRuns,
  isServiceConnected,
  readReplay,
  startReplay,
  type ReplayProgress,
} from "../store/replay-store.ts";
import { shareTrees } from "../store/share-store.ts";
import { hashResponses } from "./hash-responses.ts";

/** `before`: undefined if the factory had no facts before the rebuild. Hashes of what an endpoint returns. */
export type EndpointHashes = { readonly endpoint: string; readonly before: string | undefined; readonly after: string };

/** `changed`: the read models whose rows were not those that the facts make. */
export type RebuiltFactory = {
  readonly factoryUid: string;
  readonly changed: readonly string[];
  readonly endpoints: readonly EndpointHashes[];
};

export type Rebuild = Pick<ReplayProgress, "runs" | "deliveries" | "failures" | "lastError"> & {
  readonly factories: readonly RebuiltFactory[];
  /** Pull requests of which no stored delivery remains: their facts are those of earlier deliveries. */
  readonly retainedPullRequests: number;
  /** Runs whose facts could not be read yet. The service reads them as soon as it can. */
  readonly unreadRuns: number;
};

export type RebuildDeps = {
  readonly clock: Clock;
  /** Waits until progress is worth reading again. */
  readonly pause: () => Promise<void>;
  readonly report: (progress: Pick<ReplayProgress, "phase" | "runs" | "deliveries" | "failures">) => void;
};

/**
 * Recomputes the read models from all facts that upstream services still have and those that only this database has.
 * The service replays the facts; then each factory's sums and records are deleted and recomputed in one transaction, so
 * that the service serves the old ones until it commits, and stores new facts of that factory afterwards. Started again
 * after a crash, it resumes the replay.
 *
 * Errors: a plain Error if the service is not connected to the database, or a page could not be replayed.
 */
export async function rebuildReadModels(deps: RebuildDeps, databaseUrl: string): Promise<Rebuild> {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "rebuild metrics" });
  try {
    if (!(await isServiceConnected(database.sql)))
      throw new Error("The metrics service is not connected to this database: start the platform and try again.");
    const end = deps.clock.now();
    const hashAll = async (): Promise<Map<FactoryOfTeam, ReadonlyMap<string, string>>> => {
      const hashes = new Map<FactoryOfTeam, ReadonlyMap<string, string>>();
      for (const factory of await listFactories(database.sql))
        hashes.set(factory, await hashResponses(database, deps.clock, factory, end));
      return hashes;
    };
    const before = new Map([...(await hashAll())].map(([{ uid }, hashes]) => [uid, hashes]));
    const replay = await replayAll(deps, database);
    const unreadRuns = await waitForRuns(deps, database);
    const changed = new Map<string, string[]>();
    for (const { uid } of await listFactories(database.sql))
      changed.set(uid, await database.transaction((tx) => rebuildFactory(tx, uid)));
    const factories = [...(await hashAll())].map(([{ uid }, after]) => ({
      factoryUid: uid,
      changed: changed.get(uid) ?? [],
      endpoints: [...after].map(([endpoint, hash]) => ({
        endpoint,
        before: before.get(uid)?.get(endpoint),
        after: hash,
      })),
    }));
    const retainedPullRequests = await countPullRequestsRecordedBefore(database.sql, replay.startedAt);
    return { ...replay, factories, retainedPullRequests, unreadRuns };
  } finally {
    await database.close();
  }
}

/** Has the service replay the facts, and waits until it has. */
async function replayAll({ pause, report }: RebuildDeps, database: Database): Promise<ReplayProgress> {
  const uid = await database.transaction(startReplay);
  for (;;) {
    const progress = await readReplay(database.sql, uid);
    report(progress);
    if (progress.phase === "done") return progress;
    if (progress.deadLetterError !== null)
      throw new Error(
        `The service could not replay ${progress.phase}: ${progress.deadLetterError} Run the command again to resume.`,
      );
    await pause();
  }
}

/** Waits until the marks of the replay are refreshed. Returns how many runs could not be read. */
async function waitForRuns({ clock, pause }: RebuildDeps, database: Database): Promise<number> {
  const replayedAt = clock.now();
  for (;;) {
    const { waiting, failed } = await countUnreadRuns(database.sql, replayedAt);
    if (waiting === 0) return failed;
    await pause();
  }
}

async function rebuildFactory(tx: Sql, factoryUid: string): Promise<string[]> {
  await lockFactories(tx, [factoryUid]);
  const before = await hashReadModels(tx, factoryUid);
  await rebuildSums(tx, factoryUid);
  const { rootRunUids, urlKeys } = await clearPullRequests(tx, factoryUid);
  await shareTrees(tx, rootRunUids);
  await projectPullRequests(tx, factoryUid, urlKeys);
  const after = await hashReadModels(tx, factoryUid);
  return [...after.keys()].filter((table) => after.get(table) !== before.get(table));
}

import type { Sql } from "@millwright/database";
import { ledgerEntries } from "../domain/ledger-entry.ts";
import type { RunSnapshot } from "../domain/run-snapshot.ts";
import { readPriceBook } from "../store/compute-price-store.ts";
import { addEntries } from "../store/ledger-store.ts";
import { storeProducedPullRequests } from "../store/produced-pull-request-store.ts";
import { projectPullRequests } from "../store/project-pull-requests.ts";
import { storedVersions, storeRunFacts } from "../store/run-fact-store.ts";
import { shareTrees } from "../store/share-store.ts";

/**
 * Stores snapshots of runs and everything that follows from them. A snapshot that is older than the stored one changes
 * nothing. The caller has locked their factories.
 */
export async function storeSnapshots(tx: Sql, runs: readonly RunSnapshot[]): Promise<void> {
  if (runs.length === 0) return;
  const [versions, prices] = await Promise.all([
    storedVersions(
      tx,
      runs.map(({ uid }) => uid),
    ),
    readPriceBook(tx),
  ]);
  const newest = runs.filter(({ uid, version }) => version >= (versions.get(uid) ?? 0n));
  if (newest.length === 0) return;
  await storeRunFacts(tx, newest);
  const changed = await addEntries(
    tx,
    newest.map((run) => ({ runUid: run.uid, teamUid: run.teamUid, entries: ledgerEntries(run, prices) })),
  );
  await storeProducedPullRequests(tx, newest);
  await shareSpend(tx, [...new Set([...changed, ...newest.map(({ costOwner }) => costOwner.rootRunUid)])]);
}

/**
 * Divides the spend of trees among their pull requests again and computes the records of these. The caller has locked
 * their factories.
 */
export async function shareSpend(tx: Sql, rootRunUids: readonly string[]): Promise<void> {
  const shared = await shareTrees(tx, rootRunUids);
  for (const [factoryUid, pullRequests] of Map.groupBy(shared, (each) => each.factoryUid)) {
    await projectPullRequests(tx, factoryUid, [...new Set(pullRequests.map(({ urlKey }) => urlKey))]);
  }
}

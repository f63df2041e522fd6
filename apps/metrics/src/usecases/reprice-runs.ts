import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { pricedEntries } from "../domain/ledger-entry.ts";
import { readPriceBook } from "../store/compute-price-store.ts";
import { lockFactories } from "../store/factory-lock.ts";
import { addEntries } from "../store/ledger-store.ts";
import { repricingStore } from "../store/repricing-store.ts";
import { shareSpend } from "./store-snapshots.ts";

export type RepriceRunsDeps = { readonly database: Database; readonly clock: Clock };

/** The kind of work that prices runs again after a version of the price book was added. Its key is the version. */
export const REPRICE_RUNS = "reprice-runs";
/** Runs of one transaction: it locks their factories. */
const BATCH = 200;

/**
 * Prices runs again from the time at which a version of the price book takes effect, with one transaction per batch;
 * after a crash it continues with the next batch. Entries that already have the right price do not change, so a batch
 * may be repeated.
 */
export async function repriceRuns(deps: RepriceRunsDeps, version: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if ((await deps.database.transaction((tx) => repriceBatch(deps, tx, version))) === "complete") return;
  }
  throw new Error(`The re-pricing of version ${version} was interrupted; it continues later.`);
}

async function repriceBatch({ clock }: RepriceRunsDeps, tx: Sql, version: number): Promise<"more" | "complete"> {
  const progress = await repricingStore.lock(tx, version);
  if (!progress) return "complete";
  const { lastRunUid, runs } = await repricingStore.nextRuns(tx, version, progress.afterRunUid, BATCH);
  if (lastRunUid === undefined) {
    await repricingStore.complete(tx, version, clock.now());
    return "complete";
  }
  await lockFactories(
    tx,
    runs.map(({ factoryUid }) => factoryUid),
  );
  await reprice(
    tx,
    runs.map(({ runUid }) => runUid),
  );
  await repricingStore.advance(tx, version, lastRunUid, runs.length);
  return "more";
}

/** The caller has locked the factories of the runs. */
async function reprice(tx: Sql, runUids: readonly string[]): Promise<void> {
  const prices = await readPriceBook(tx);
  const recorded = await repricingStore.recordedRuns(tx, runUids);
  const changed = await addEntries(
    tx,
    recorded.map((run) => ({ runUid: run.uid, teamUid: run.teamUid, entries: pricedEntries(run, prices) })),
  );
  await shareSpend(tx, changed);
}

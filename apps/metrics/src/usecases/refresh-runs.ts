import type { Clock } from "@millwright/clock";
import { isTransient, type Database, type Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { nextReadAt, type RunSnapshot } from "../domain/run-snapshot.ts";
import { lockFactories } from "../store/factory-lock.ts";
import { claimStale, endRefresh, lockClaimed, retryLater, type StaleRun } from "../store/stale-run-store.ts";
import { storeSnapshots } from "./store-snapshots.ts";

export type RefreshRunsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly orchestrator: {
    /** Returns complete snapshots; left out: unknown runs and runs of no factory. */
    readRuns(runUids: readonly string[]): Promise<RunSnapshot[]>;
  };
  /** Divides every wait. */
  readonly timeScale: number;
};

/** Runs per batch: the maximum of one ListRunFacts. */
export const REFRESH_BATCH = 200;
/** How long runs stay claimed by a process that died. */
const LEASE_MS = 30_000;
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 300_000;

/**
 * Reads the facts of runs that are due and stores them. Any number of replicas may do so: a claim that is lost, because
 * its lease ended or the run was marked again, stores nothing, so that an older snapshot never follows a newer one. A
 * process that dies between its claim and its commit leaves the marks: the runs are due again when the lease ends.
 * Returns how many runs were claimed.
 */
export async function refreshRuns(deps: RefreshRunsDeps): Promise<number> {
  const claims = await claimStale(deps.database.sql, deps.clock.now(), REFRESH_BATCH, LEASE_MS / deps.timeScale);
  if (claims.length > 0) await refresh(deps, claims);
  return claims.length;
}

/** A failed batch is retried run by run, so that one failing run does not make the others stale. */
async function refresh(deps: RefreshRunsDeps, claims: readonly StaleRun[]): Promise<void> {
  try {
    const runs = await deps.orchestrator.readRuns(claims.map(({ runUid }) => runUid));
    await deps.database.transaction((tx) => store(deps, tx, claims, runs));
  } catch (error) {
    if (claims.length > 1 && !mayPass(error)) {
      for (const claim of claims) await refresh(deps, [claim]);
      return;
    }
    deps.log.warn(
      { error, count: claims.length, entity: "run", entityUid: claims[0]!.runUid },
      "facts of runs were not stored; they are read again",
    );
    const [pauseMs, pauseMsMax] = [RETRY_MS / deps.timeScale, RETRY_MS_MAX / deps.timeScale];
    await deps.database.transaction((tx) => retryLater(tx, claims, deps.clock.now(), pauseMs, pauseMsMax));
  }
}

/** Whether the failure is of the database or the orchestrator rather than of one of the runs. */
const mayPass = (error: unknown): boolean => isTransient(error) || (isDomainError(error) && error.retryable);

type Claims = readonly StaleRun[];

async function store(
  { clock, timeScale }: RefreshRunsDeps,
  tx: Sql,
  claims: Claims,
  read: readonly RunSnapshot[],
): Promise<void> {
  await lockFactories(
    tx,
    read.map(({ costOwner }) => costOwner.factoryUid),
  );
  const claimed = await lockClaimed(tx, claims);
  const runs = read.filter(({ uid }) => claimed.has(uid));
  await storeSnapshots(tx, runs);
  const planned = new Map(runs.map((run) => [run.uid, nextReadAt(run, clock.now(), timeScale)]));
  await endRefresh(
    tx,
    [...claimed].map((runUid) => ({ runUid, nextReadAt: planned.get(runUid) })),
  );
}

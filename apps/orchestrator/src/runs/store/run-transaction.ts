import { AsyncLocalStorage } from "node:async_hooks";
import { Batcher, isTransient, type Database } from "@millwright/database";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import { bindStore, type BoundStore } from "../../storage/store/bind-store.ts";
import { once } from "../../storage/store/idempotency-store.ts";
import type { Timings } from "../domain/timings.ts";
import { ensureCapacity } from "./capacity-store.ts";
import * as checkpointStore from "./checkpoint-store.ts";
import * as childrenStore from "./children-store.ts";
import { readClaimedExecutions } from "./claim-store.ts";
import { lockFactoryOpen } from "./closed-factory-store.ts";
import * as createStore from "./create-store.ts";
import { takeOverDirectives } from "./directive-store.ts";
import * as executionStore from "./execution-store.ts";
import { offerToClient } from "./local-run-store.ts";
import * as lockedRuns from "./locked-runs.ts";
import * as messageStore from "./message-store.ts";
import { storeOfferToken } from "./offer-token-store.ts";
import { appendRunEvents, appendWorkerEvents } from "./run-events-store.ts";
import { saveChanges } from "./save-changes.ts";

/** What use cases do to runs inside one transaction. A simulation for tests implements it in memory. */
const OPERATIONS = {
  ...checkpointStore,
  ...childrenStore,
  ...createStore,
  ...executionStore,
  ...lockedRuns,
  ...messageStore,
  ...{ appendRunEvents, appendWorkerEvents, ensureCapacity, lockFactoryOpen, offerToClient, once, saveChanges },
  ...{ readClaimedExecutions, storeOfferToken, takeOverDirectives },
};

/** The functions of the stores of runs, bound to one transaction. */
export type RunTransaction = Omit<BoundStore<typeof OPERATIONS>, "once"> & {
  once<T>(request: OnceRequest, f: () => Promise<T>): Promise<T>;
};

/** Runs `f` in one transaction, and again after a deadlock. */
export type InRunTransaction = <T>(f: (tx: RunTransaction) => Promise<T>) => Promise<T>;

/** Runs transactions over runs. The lock order rules out deadlocks between this service's own statements. */
export const runTransactions =
  (database: Database, timings: Timings): InRunTransaction =>
  (f) =>
    database.transaction((sql) => f(bindStore({ ...sql, timings }, OPERATIONS) as RunTransaction));

/**
 * Batches concurrent transactions into one: a single commit for all parts, and no part waits for the statements of
 * another. Only for parts that take no lock which another part takes. If the outcome is unknown, no part is retried.
 */
export function sharedRunTransactions(runs: InRunTransaction): InRunTransaction {
  type Part = (tx: RunTransaction) => Promise<unknown>;
  const parts = new Batcher(
    (batch: readonly Part[]) => runs((tx) => Promise.all(batch.map((part) => part(tx)))),
    (error) => !isTransient(error),
  );
  // Each part runs in the async context of its own request.
  return async <T>(f: (tx: RunTransaction) => Promise<T>) => (await parts.add(AsyncLocalStorage.bind(f))) as T;
}

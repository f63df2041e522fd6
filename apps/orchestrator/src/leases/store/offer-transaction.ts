import type { Database } from "@millwright/database";
import type { Timings } from "../../runs/domain/timings.ts";
import { bindStore, type BoundStore } from "../../storage/store/bind-store.ts";
import { findOfferedLease, transferLease } from "./dispatch-store.ts";
import { putSession } from "./session-store.ts";

const OPERATIONS = { findOfferedLease, putSession, transferLease };

/** Runs `f` in one transaction over an offered lease and the session that takes it over. */
export type InOfferTransaction = <T>(f: (tx: BoundStore<typeof OPERATIONS>) => Promise<T>) => Promise<T>;

export const offerTransactions =
  (database: Database, timings: Timings): InOfferTransaction =>
  (f) =>
    database.transaction((sql) => f(bindStore({ ...sql, timings }, OPERATIONS)));

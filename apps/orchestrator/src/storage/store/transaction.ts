import type { Sql } from "@millwright/database";

/** Runs a function in a transaction on the service's database. */
export type Transaction = <T>(f: (tx: Sql) => Promise<T>) => Promise<T>;

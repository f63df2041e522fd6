import type { Sql } from "@millwright/database";
import type { Timings } from "../domain/timings.ts";

/** A connection or a transaction, with the durations that statements about leases need. */
export type RunSql = Sql & { readonly timings: Timings };

import { expect } from "@jest/globals";
import { enqueueSweep } from "../../src/storage/store/blob-work.ts";
import type { CatalogPlatform } from "./catalog-platform.ts";

let sweeps = 0;

/**
 * Runs one sweep by the work queue, after all other work. Files are stored with the machine's time, and the test clock
 * is ahead of it.
 */
export async function runSweep({ work, database }: Pick<CatalogPlatform, "work" | "database">): Promise<void> {
  await work.drain();
  await enqueueSweep(database.sql, new Date(sweeps++));
  await work.drain();
  expect(
    (await database.sql.query("SELECT kind, last_error FROM stream.work_items WHERE last_error IS NOT NULL")).rows,
  ).toEqual([]);
}

/** Makes work due that waits for the expiry of the last signed link, an hour later, and runs it. */
export async function deleteUnlinkedBlobs({
  work,
  database,
}: Pick<CatalogPlatform, "work" | "database">): Promise<void> {
  await database.sql.query(
    "UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE kind = 'delete_blob'",
  );
  await work.drain();
}

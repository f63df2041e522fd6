import { Client } from "pg";

/** Calls `f` with a connection to a database. */
export async function withClient<T>(url: string, f: (db: Client) => Promise<T>): Promise<T> {
  const db = new Client({ connectionString: url, application_name: "millwright-admin" });
  db.on("error", () => {}); // the running statement reports it
  await db.connect();
  try {
    return await f(db);
  } finally {
    await db.end();
  }
}

/** Returns the values of the column `value` of a query. */
export const valuesOf = async (db: Client, text: string, values: readonly unknown[] = []): Promise<string[]> =>
  (await db.query<{ value: string }>(text, [...values])).rows.map(({ value }) => value);

/** Yields the rows of a query as JSON texts, read through a cursor in the open transaction. */
export async function* jsonRows(db: Client, from: string): AsyncGenerator<string> {
  await db.query(`DECLARE json_rows NO SCROLL CURSOR FOR SELECT to_json(t)::text AS value FROM ${from}`);
  for (;;) {
    const rows = await valuesOf(db, "FETCH 500 FROM json_rows");
    if (rows.length === 0) break;
    yield* rows;
  }
  await db.query("CLOSE json_rows");
}

/** Returns whether the database has a table. */
export const hasTable = async (db: Client, table: string): Promise<boolean> =>
  (await db.query<{ exists: boolean }>("SELECT to_regclass($1) IS NOT NULL AS exists", [table])).rows[0]?.exists ??
  false;

/** Columns of rows that are passed to a statement as JSON. */
export type JsonColumns = {
  readonly names: readonly string[];
  /** Their names, separated by commas; with an alias, each qualified by it. */
  list(alias?: string): string;
  /** Their names and types, in the syntax of `json_to_record` and `json_to_recordset`. */
  readonly definitions: string;
  /** Assignments of the values that an INSERT has proposed, for ON CONFLICT DO UPDATE. */
  readonly excluded: string;
};

/**
 * Splits rows so that no part has two rows of one key, because ON CONFLICT DO UPDATE changes a row once per statement.
 * Rows of one key remain in order.
 */
export function statementsOf<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Row[][] {
  const counts = new Map<string, number>();
  const statements: Row[][] = [];
  for (const row of rows) {
    const count = counts.get(keyOf(row)) ?? 0;
    counts.set(keyOf(row), count + 1);
    (statements[count] ??= []).push(row);
  }
  return statements;
}

/** Describes columns by their types, so that a column is added in one place. */
export function jsonColumns(types: Readonly<Record<string, string>>): JsonColumns {
  const names = Object.keys(types);
  return {
    names,
    list: (alias) => names.map((name) => (alias === undefined ? name : `${alias}.${name}`)).join(", "),
    definitions: names.map((name) => `${name} ${types[name]}`).join(", "),
    excluded: names.map((name) => `${name} = excluded.${name}`).join(", "),
  };
}

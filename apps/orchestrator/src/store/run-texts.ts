import type { Sql } from "@millwright/database";
import type { RunListQuery } from "../domain/run-list.ts";
import type { Bind } from "./run-filters.ts";

/** `run_texts`, with the names of the columns of `runs`: of those it has what never changes, beside the text. */
export const TEXTS = "(SELECT run_uid AS uid, owner_uid, created_at, title, skill_spec, text FROM run_texts)";

const KNOWN: ReadonlySet<string> = new Set(["teamUid", "search", "states", "createdAfter", "createdBefore", "skillSpec", "sortBy", "isDescending"] satisfies (keyof RunListQuery)[]);

/** Whether `run_texts` alone says which runs these are, and in which order. */
export const isOfTexts = (query: RunListQuery): boolean =>
  wordsOf(query).length > 0 && query.states.length === 0 && query.sortBy !== "updated_at" && Object.entries(query).every(([key, value]) => value === undefined || KNOWN.has(key));

export const wordsOf = ({ search }: RunListQuery): readonly string[] => (search && "words" in search ? search.words : []);

/** The text has each of these, literally. One without three letters in a row has no trigrams: to read the whole index for it takes longer than all texts. */
export const containing = (words: readonly string[], text: string, bind: Bind): string =>
  words
    .map((word) => (/[\p{L}\p{N}]{3}/u.test(word) ? `${text} LIKE ${bind(`%${word.replace(/[\\%_]/g, String.raw`\$&`)}%`, "text")}` : `strpos(${text}, ${bind(word, "text")}) > 0`))
    .join(" AND ");

const SAMPLE = 2000;

/** About how many texts have each of the words, and of how many: of all teams, by some pages of the table, each time the same. */
export async function countTexts(sql: Sql, words: readonly string[]): Promise<{ readonly count: number; readonly of: number }> {
  const params: unknown[] = [];
  const condition = containing(words, "text", (value, type) => `$${params.push(value)}::${type}`);
  // Where PostgreSQL has not counted the rows yet, each page has some.
  const { rows } = await sql.query<{ share: number; of: number }>(
    `WITH total AS (SELECT greatest(reltuples, 20 * pg_relation_size(oid) / 8192, ${SAMPLE})::float8 AS rows FROM pg_class WHERE oid = 'run_texts'::regclass)
     SELECT count(*) FILTER (WHERE ${condition})::float8 / greatest(count(*), 1) AS share, (SELECT rows FROM total) AS of
       FROM run_texts TABLESAMPLE SYSTEM (100.0 * ${SAMPLE} / (SELECT rows FROM total)) REPEATABLE (0)`,
    params,
  );
  const { share, of } = rows[0]!;
  return { count: share * of, of };
}

import type { Sql } from "@millwright/database";
import type { RunListQuery } from "../domain/run-list.ts";
import { hasSimilar, longest, searchedPieces } from "../domain/similar-words.ts";
import { binding, type Bind } from "../../storage/store/binding.ts";

/** `run_texts` with the column names of `runs`. Besides the text, it has only columns that never change. */
export const TEXTS = "(SELECT run_uid AS uid, owner_uid, created_at, title, skill_spec, text FROM run_texts)";

const KNOWN: ReadonlySet<string> = new Set([
  "teamUid",
  "search",
  "states",
  "createdAfter",
  "createdBefore",
  "skillSpec",
  "sortBy",
  "isDescending",
] satisfies (keyof RunListQuery)[]);

/** Whether `run_texts` alone determines which runs match, and their order. */
export const isOfTexts = (query: RunListQuery): boolean =>
  wordsOf(query).length > 0 &&
  query.states.length === 0 &&
  query.sortBy !== "updated_at" &&
  Object.entries(query).every(([key, value]) => value === undefined || KNOWN.has(key));

export const wordsOf = ({ search }: RunListQuery): readonly string[] =>
  search && "words" in search ? search.words : [];

/** Returns the conditions that the text has each of the words, literally. */
export const containing = (words: readonly string[], text: string, bind: Bind): string[] =>
  words.map((word) => `strpos(${text}, ${bind(word, "text")}) > 0`);

/**
 * Returns the conditions that the trigram index checks. Letters and digits have no special meaning in LIKE patterns.
 */
export const suggesting = (trigrams: readonly string[], text: string, bind: Bind): string[] =>
  trigrams.map((trigram) => `${text} LIKE ${bind(`%${trigram}%`, "text")}`);

/** Statistics of the words of `q`, estimated before runs are searched. */
export type Sample = {
  /** Estimated number of texts that have all words, among `of` texts of all teams. */
  readonly count: number;
  readonly of: number;
  /**
   * The trigrams by which texts with the words are found fastest; empty if the words are too short. For the index,
   * one trigram that most texts contain costs as much as all other trigrams.
   */
  readonly trigrams: readonly string[];
};

const SAMPLE_SIZE = 2000;
/** Each trigram is counted in one of this many texts of the sample. */
const SAMPLED_EVERY = 8;
const TRIGRAMS_MAX = 40;
const TRIGRAMS_USED = 6;

/** Estimates the statistics from some pages of the table, the same pages each time. */
export async function sampleTexts(sql: Sql, words: readonly string[]): Promise<Sample> {
  const { params, bind } = binding();
  const trigrams = trigramsOf(words);
  // The database decides which characters are letters. For three letters, `show_trgm` returns four trigrams, because it
  // pads the word with blanks.
  const shares = trigrams.map((trigram) => {
    const bound = bind(trigram, "text");
    return `CASE WHEN cardinality(show_trgm(${bound})) = 4 THEN count(*) FILTER (WHERE nth % ${SAMPLED_EVERY} = 0 AND strpos(text, ${bound}) > 0) * ${SAMPLED_EVERY}::float8 / greatest(count(*), 1) END`;
  });
  // Until PostgreSQL has counted the rows (ANALYZE), 20 rows per page are assumed.
  const { rows } = await sql.query<{ share: number; of: number; shares: (number | null)[] }>(
    `WITH total AS (SELECT greatest(reltuples, 20 * pg_relation_size(oid) / 8192, ${SAMPLE_SIZE})::float8 AS rows FROM pg_class WHERE oid = 'run_texts'::regclass)
     SELECT count(*) FILTER (WHERE ${containing(words, "text", bind).join(" AND ")})::float8 / greatest(count(*), 1) AS share, (SELECT rows FROM total) AS of, ARRAY[${shares.join(", ")}]::float8[] AS shares
       FROM (SELECT text, row_number() OVER () AS nth FROM run_texts TABLESAMPLE SYSTEM (100.0 * ${SAMPLE_SIZE} / (SELECT rows FROM total)) REPEATABLE (0)) sample`,
    params,
  );
  const { share, of, shares: found } = rows[0]!;
  return {
    count: share * of,
    of,
    trigrams: rarest(
      trigrams.flatMap((trigram, i) => (typeof found[i] === "number" ? [{ trigram, share: found[i] }] : [])),
    ),
  };
}

/** Maximum number of texts that are compared with a search word by word. */
const CANDIDATES_MAX = 500;

/** Returns runs of these owners whose texts have words similar to these. */
export async function similarTexts(
  sql: Sql,
  ownerUids: readonly string[],
  words: readonly string[],
): Promise<string[]> {
  const pieces = searchedPieces(words);
  if (!pieces) return [];
  const { rows } = await sql.query<{ uid: string; text: string }>(
    "SELECT uid, text FROM similar_run_texts($1::uuid[], $2, $3)",
    [ownerUids, longest(pieces), CANDIDATES_MAX],
  );
  return rows.filter(({ text }) => hasSimilar(text, pieces)).map(({ uid }) => uid);
}

/** Returns each sequence of three letters or digits in the words, at most TRIGRAMS_MAX. */
function trigramsOf(words: readonly string[]): string[] {
  const found = words.flatMap((word) => Array.from(word.matchAll(/(?=([\p{L}\p{N}]{3}))/gu), ([, three]) => three!));
  return [...new Set(found)].slice(0, TRIGRAMS_MAX);
}

function rarest(found: readonly { readonly trigram: string; readonly share: number }[]): string[] {
  const sorted = found.toSorted((a, b) => a.share - b.share);
  const rare = sorted.filter(({ share }) => share < 0.25);
  return (rare.length > 0 ? rare.slice(0, TRIGRAMS_USED) : sorted.slice(0, 2)).map(({ trigram }) => trigram);
}

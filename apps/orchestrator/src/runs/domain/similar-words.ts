/** Minimum length of a word that may contain typos. Shorter words are similar to too many others. */
const LETTERS_MIN = 4;
/** Words of at least this length may contain two typos, shorter words one. */
const LETTERS_OF_TWO = 8;

/**
 * Returns the words of a search, split as texts are split. Returns undefined if no word is long enough to be found
 * despite a typo.
 */
export function searchedPieces(words: readonly string[]): readonly string[] | undefined {
  const pieces = [...new Set(words.flatMap(piecesOf))];
  return pieces.some((piece) => Array.from(piece).length >= LETTERS_MIN) ? pieces : undefined;
}

/** Returns the longest piece, which rules out the most texts. */
export const longest = (pieces: readonly string[]): string => pieces.toSorted((a, b) => b.length - a.length)[0] ?? "";

/**
 * Returns whether a text contains each of the pieces, or a word that is equal to the piece, or begins with it, except
 * for typos.
 */
export function hasSimilar(text: string, pieces: readonly string[]): boolean {
  const words = [...new Set(piecesOf(text))];
  return pieces.every((piece) => text.includes(piece) || words.some((word) => isSimilar(piece, word)));
}

const piecesOf = (text: string): string[] => text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

function isSimilar(piece: string, word: string): boolean {
  const [searched, letters] = [Array.from(piece), Array.from(word)];
  if (searched.length < LETTERS_MIN) return false;
  const typos = searched.length < LETTERS_OF_TWO ? 1 : 2;
  if (letters.length < searched.length - typos) return false;
  for (
    let length = Math.min(letters.length, searched.length);
    length <= Math.min(letters.length, searched.length + typos);
    length += 1
  ) {
    if (distance(searched, letters.slice(0, length)) <= typos) return true;
  }
  return false;
}

/** Returns the number of letters to insert, remove, replace, or swap with the next one (optimal string alignment). */
function distance(a: readonly string[], b: readonly string[]): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_one, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          last[j]! + 1,
          row[j - 1]! + 1,
          last[j - 1]! + (isSame ? 0 : 1),
          isSwapped ? before[j - 2]! + 1 : Infinity,
        ),
      );
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}

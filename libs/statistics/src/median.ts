/** Returns the median; null for no values. Reorders the values, so that a large number of them is not sorted. */
export function median(values: Float64Array): number | null {
  if (values.length === 0) return null;
  const middle = values.length >> 1;
  const upper = select(values, middle);
  if (values.length % 2 === 1) return upper;
  // `select` has moved the smaller values before the middle.
  let lower = values[0]!;
  for (let index = 1; index < middle; index++) lower = Math.max(lower, values[index]!);
  return (lower + upper) / 2;
}

/**
 * Returns the value at an index of the sorted order (Hoare's selection). Moves smaller values before the index and
 * larger ones after it.
 */
function select(values: Float64Array, index: number): number {
  for (let first = 0, last = values.length - 1; first < last;) {
    const pivot = middleOf(values[first]!, values[(first + last) >> 1]!, values[last]!);
    let [low, high] = [first, last];
    while (low <= high) {
      while (values[low]! < pivot) low++;
      while (values[high]! > pivot) high--;
      if (low > high) break;
      const moved = values[low]!;
      values[low++] = values[high]!;
      values[high--] = moved;
    }
    if (index <= high) last = high;
    else if (index >= low) first = low;
    else break;
  }
  return values[index]!;
}

/** Sorted values, the most common order of a database, need no swaps with this pivot. */
const middleOf = (a: number, b: number, c: number): number => Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));

/**
 * Processes items with distinct keys in one batch, and every item without a key, or with the key of a later item, on
 * its own. If the batch fails, its items are retried one by one, so that no item fails because of another.
 */
export async function processBatched<T>(
  items: readonly T[],
  keyOf: (item: T) => string | undefined,
  process: (batch: readonly T[]) => Promise<void>,
): Promise<void> {
  const byKey = new Map(items.flatMap((item) => (keyOf(item) === undefined ? [] : [[keyOf(item), item]])));
  const batch = [...byKey.values()];
  const singles = items.filter((item) => byKey.get(keyOf(item)) !== item);
  const oneByOne = async (singly: readonly T[]): Promise<void> =>
    void (await Promise.all(singly.map((item) => process([item]))));
  await Promise.all([
    batch.length > 1 ? process(batch).catch(() => oneByOne(batch)) : oneByOne(batch),
    oneByOne(singles),
  ]);
}

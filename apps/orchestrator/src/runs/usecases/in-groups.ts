/**
 * Runs `act` on one group of items with distinct keys, and on each other item alone. If the group fails, its items are
 * retried one by one, so that no item fails because of another.
 */
export async function inGroups<T>(
  items: readonly T[],
  keyOf: (item: T) => string | undefined,
  act: (group: readonly T[]) => Promise<void>,
): Promise<void> {
  const together = new Map(items.flatMap((item) => (keyOf(item) === undefined ? [] : [[keyOf(item), item]])));
  const group = [...together.values()];
  const alone = items.filter((item) => together.get(keyOf(item)) !== item);
  const oneByOne = async (those: readonly T[]): Promise<void> =>
    void (await Promise.all(those.map((item) => act([item]))));
  await Promise.all([group.length > 1 ? act(group).catch(() => oneByOne(group)) : oneByOne(group), oneByOne(alone)]);
}

/**
 * Acts on items together where `keyOf` gives them a run of their own, and on each of the rest by itself. What fails together
 * is done again one by one, so that nobody fails by another's fault.
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

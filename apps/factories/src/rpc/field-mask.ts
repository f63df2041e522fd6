import { invalidArgument } from "@millwright/errors";

/** Errors: unknown_field, for a mask that names a field that cannot be set. */
export function checkMask<const T extends string>(paths: readonly string[], known: readonly T[]): Set<T> {
  const unknown = paths.find((path) => !known.some((name) => name === path));
  if (unknown !== undefined)
    throw invalidArgument(
      "unknown_field",
      `The field ${unknown} cannot be changed. Changeable fields: ${known.join(", ")}.`,
      { field: unknown },
    );
  return new Set(paths as readonly T[]);
}

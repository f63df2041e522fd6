import { invalidArgument, type DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";

/**
 * Returns the distinct uids of a filter in lower case. Errors: filter_invalid (invalid_argument): a value is not a UUID
 * or is the nil UUID.
 */
export function readUids(name: string, values: readonly string[]): string[] {
  const invalid = values.find((value) => !isUuid(value) || NIL.test(value));
  if (invalid !== undefined) throw filterInvalid(`${name} must be a UUID other than the nil UUID (got "${invalid}").`);
  return [...new Set(values.map((value) => value.toLowerCase()))];
}

/** Returns the distinct values of a parameter. Errors: filter_invalid (invalid_argument): a value is unknown. */
export function readValues<V extends string>(name: string, values: readonly string[], known: readonly V[]): V[] {
  const unknown = values.find((value) => !known.includes(value as V));
  if (unknown !== undefined) throw filterInvalid(`${name} must be one of ${known.join(", ")} (got "${unknown}").`);
  return [...new Set(values as V[])];
}

export const filterInvalid = (message: string): DomainError => invalidArgument("filter_invalid", message);

const NIL = /^[0-]+$/;

import { withExactNumbers } from "./exact-numbers.ts";
import { FILTER_LIMITS, type Leaf, type Pattern, type PayloadFilter, type Scalar } from "./filter.ts";
import { filterScalarOf, isObject, sameScalar } from "./payload.ts";

/** `path`: the names that lead to the fault, joined by dots; "" is the filter itself. */
export type FilterFault = { readonly path: string; readonly message: string };
/** A valid filter, or all of its faults in the order of the text. */
export type ParsedFilter =
  | { readonly filter: PayloadFilter; readonly faults?: undefined }
  | { readonly filter?: undefined; readonly faults: readonly FilterFault[] };

const OPERATORS: ReadonlySet<string> = new Set(["in", "not_in", "exists"]);

/**
 * Parses a filter from its JSON form; absent is `{}`. Numbers that are not floats must come from `parseExactly`; an
 * inexact float is reported as a fault, because its parser has changed it.
 */
export function parseFilter(json: unknown): ParsedFilter {
  const reader = new FilterReader();
  const filter = reader.pattern(json ?? {}, []);
  return reader.faults.length > 0 ? { faults: reader.faults } : { filter };
}

/** Parses a filter from its stored form (`parseStored`). */
export const parseStoredFilter = (stored: unknown): ParsedFilter => parseFilter(withExactNumbers(stored));

class FilterReader {
  readonly faults: FilterFault[] = [];
  #leaves = 0;

  pattern(json: unknown, path: readonly string[]): Pattern {
    if (!isObject(json)) this.#fault(path, "A filter is an object whose keys are names of fields.");
    else if (hasOperator(json)) this.#fault(path, "in, not_in and exists belong to a field, not to the whole body.");
    else return this.#fields(json, path);
    return { kind: "pattern", fields: [] };
  }

  #fields(json: Record<string, unknown>, path: readonly string[]): Pattern {
    return {
      kind: "pattern",
      fields: Object.entries(json).map(([name, node]) => [name, this.#node(node, [...path, name])] as const),
    };
  }

  #node(json: unknown, path: readonly string[]): Leaf | Pattern {
    if (path.length > FILTER_LIMITS.depth) {
      if (path.length === FILTER_LIMITS.depth + 1)
        this.#fault(path, `A filter is at most ${FILTER_LIMITS.depth} levels deep.`);
      return { kind: "leaf", in: [], notIn: [] };
    }
    if (isObject(json) && !hasOperator(json)) return this.#fields(json, path);
    this.#leaves += 1;
    if (this.#leaves === FILTER_LIMITS.leaves + 1)
      this.#fault(path, `A filter names at most ${FILTER_LIMITS.leaves} fields.`);
    if (Array.isArray(json)) return { kind: "leaf", in: this.#set(json, path), notIn: [] };
    if (isObject(json)) return this.#operators(json, path);
    this.#fault(
      path,
      "Write a list of allowed values, an object of in, not_in and exists, or an object of nested fields.",
    );
    return { kind: "leaf", in: [], notIn: [] };
  }

  #operators(json: Record<string, unknown>, path: readonly string[]): Leaf {
    for (const key of Object.keys(json))
      if (!OPERATORS.has(key))
        this.#fault([...path, key], "in, not_in and exists cannot stand beside names of fields.");
    const { in: allowed, not_in: refused, exists } = json;
    const leaf = {
      in: this.#set(allowed ?? [], [...path, "in"]),
      notIn: this.#set(refused ?? [], [...path, "not_in"]),
    };
    for (const key of ["in", "not_in"])
      if (json[key] === null) this.#fault([...path, key], "A set is a list of values.");
    if ("exists" in json && typeof exists !== "boolean") this.#fault([...path, "exists"], "exists is true or false.");
    if (leaf.in.some((accepted) => leaf.notIn.some((excluded) => sameScalar(accepted, excluded))))
      this.#fault(path, "The same value is in in and in not_in.");
    if (exists === false && leaf.in.length > 0)
      this.#fault(path, "A field that must not exist cannot have one of the values of in.");
    return { kind: "leaf", ...leaf, exists: typeof exists === "boolean" ? exists : undefined };
  }

  #set(json: unknown, path: readonly string[]): Scalar[] {
    if (!Array.isArray(json)) {
      this.#fault(path, "A set is a list of values.");
      return [];
    }
    if (json.length > FILTER_LIMITS.values) this.#fault(path, `A set has at most ${FILTER_LIMITS.values} values.`);
    return json.flatMap((value: unknown, index) => {
      const at = [...path, String(index)];
      if (
        typeof value === "number" &&
        (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
      ) {
        this.#fault(at, "A number must be finite and arrive as it was written.");
        return [];
      }
      const scalar = filterScalarOf(value);
      if (scalar === undefined) this.#fault(at, "A set consists of strings, numbers, true, false and null.");
      return scalar === undefined ? [] : [scalar];
    });
  }

  #fault(path: readonly string[], message: string): void {
    this.faults.push({ path: path.join("."), message });
  }
}

const hasOperator = (json: Record<string, unknown>): boolean => Object.keys(json).some((key) => OPERATORS.has(key));

import type { Leaf, Pattern, PayloadFilter, Scalar } from "./filter.ts";
import { isObject, sameScalar, scalarOf, type Payload } from "./payload.ts";

/**
 * `failedPaths`: the fields that do not match, names joined by dots; a nested pattern that no element of a list matches
 * is one.
 */
export type Verdict = { readonly matches: boolean; readonly failedPaths: readonly string[] };

/**
 * Returns whether a body matches a filter. Never throws: a body is finite and a filter
 * shallow.
 */
export function evaluateFilter(filter: PayloadFilter, { json }: Payload): Verdict {
  if (filter.fields.length === 0) return { matches: true, failedPaths: [] };
  const failedPaths = failures(filter, json, "");
  return { matches: failedPaths.length === 0, failedPaths };
}

/** Yields every path at which a value does not match the pattern; `at` is the pattern's own path. */
function failures(pattern: Pattern, value: unknown, at: string): string[] {
  if (Array.isArray(value))
    return value.some((element) => isObject(element) && failures(pattern, element, at).length === 0) ? [] : [at];
  if (!isObject(value)) return [at];
  return pattern.fields.flatMap(([name, node]) => {
    const path = at === "" ? name : `${at}.${name}`;
    const has = Object.hasOwn(value, name);
    if (node.kind === "leaf") return isMet(node, has ? { value: value[name] } : undefined) ? [] : [path];
    return has ? failures(node, value[name], path) : [path];
  });
}

function isMet(leaf: Leaf, field: { readonly value: unknown } | undefined): boolean {
  if (leaf.exists !== undefined && leaf.exists !== (field !== undefined)) return false;
  if (leaf.in.length === 0 && leaf.notIn.length === 0) return true;
  const values = field ? scalarsOf(field.value) : [];
  const hasOneOf = (set: readonly Scalar[]): boolean =>
    values.some((value) => set.some((member) => sameScalar(value, member)));
  return (leaf.in.length === 0 || hasOneOf(leaf.in)) && !hasOneOf(leaf.notIn);
}

/** Returns what sets are compared with: the scalar, or the scalars of a list; nothing for an object. */
function scalarsOf(value: unknown): Scalar[] {
  return (Array.isArray(value) ? value : [value]).flatMap((item) => {
    const scalar = scalarOf(item);
    return scalar === undefined ? [] : [scalar];
  });
}

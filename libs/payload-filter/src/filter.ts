/** A set member in comparable form: by type, and numbers as decimals. */
export type Scalar = string | boolean | null | Decimal;

/** A number in canonical decimal form, so that 1, 1.0 and 10e-1 are equal and 0.1 is not a nearby binary float. */
export type Decimal = { readonly decimal: string };

/** The constraints of one field. An empty set is no constraint. */
export type Leaf = {
  readonly kind: "leaf";
  readonly in: readonly Scalar[];
  readonly notIn: readonly Scalar[];
  readonly exists?: boolean;
};

/** The constraints of an object: every named field must match. */
export type Pattern = {
  readonly kind: "pattern";
  readonly fields: readonly (readonly [name: string, node: Leaf | Pattern])[];
};

/** A valid filter of delivered bodies. Made by `parseFilter`. */
export type PayloadFilter = Pattern;

/** Limits of a filter. */
export const FILTER_LIMITS = {
  /** Number of names on the way to a leaf, including its own. */
  depth: 10,
  leaves: 64,
  /** Maximum values in one `in` or `not_in`. */
  values: 32,
} as const;

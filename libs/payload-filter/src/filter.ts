/** A set member as it is compared: by type, and numbers as decimals. */
export type Scalar = string | boolean | null | Decimal;

/** A number in canonical decimal form, so that 1, 1.0 and 10e-1 are one value and 0.1 is not a binary float near it. */
export type Decimal = { readonly decimal: string };

/** What must hold of one field. A set without values puts no constraint. */
export type Leaf = {
  readonly kind: "leaf";
  readonly in: readonly Scalar[];
  readonly notIn: readonly Scalar[];
  readonly exists?: boolean;
};

/** What must hold of an object: every named field. */
export type Pattern = {
  readonly kind: "pattern";
  readonly fields: readonly (readonly [name: string, node: Leaf | Pattern])[];
};

/** A valid filter of delivered bodies (spec factory-files §7). Made by `parseFilter`. */
export type PayloadFilter = Pattern;

/** Spec factory-files §7.1. */
export const FILTER_LIMITS = {
  /** Names on the way to a leaf, itself included. */
  depth: 10,
  leaves: 64,
  /** In one `in` or `not_in`. */
  values: 32,
} as const;

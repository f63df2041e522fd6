/**
 * Returns the number of rows of a page: the default for absent or 0 (an unset proto field), else clamped to 1 and the
 * maximum. The gateway enforces the public ranges with a 400; services clamp.
 */
export const clampPageSize = (requested: number | undefined, limits: { default: number; max: number }): number =>
  requested ? Math.min(Math.max(Math.trunc(requested), 1), limits.max) : limits.default;

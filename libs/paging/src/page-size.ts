/**
 * The number of rows to answer: the default for absent or 0 (a proto field left unset), else within 1 and the maximum.
 * The public ranges are enforced (with a 400) by the gateway; services clamp.
 */
export const clampPageSize = (requested: number | undefined, limits: { default: number; max: number }): number =>
  requested ? Math.min(Math.max(Math.trunc(requested), 1), limits.max) : limits.default;

const DEPTH_MAX = 6;

/** Returns whether an error or one of its causes has one of the codes, as PostgreSQL, Prisma or Node.js reports them. */
export function hasErrorCode(error: unknown, codes: ReadonlySet<unknown>, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > DEPTH_MAX) return false;
  const { code, originalCode, cause, meta, driverAdapterError } = error as Record<string, unknown>;
  return (
    codes.has(code) ||
    codes.has(originalCode) ||
    [cause, meta, driverAdapterError].some((inner) => hasErrorCode(inner, codes, depth + 1))
  );
}

import { DomainError } from "./domain-error.ts";

/** PostgreSQL's disk_full, and the file system's codes for missing free space, free inodes or quota. */
const CODES: ReadonlySet<unknown> = new Set(["53100", "ENOSPC", "EDQUOT"]);
const DEPTH_MAX = 6;

/** Returns whether a write failed because a disk is full, as PostgreSQL, Prisma or the file system reports it. */
export function isStorageFull(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > DEPTH_MAX) return false;
  const { code, originalCode, cause, meta, driverAdapterError } = error as Record<string, unknown>;
  return (
    CODES.has(code) ||
    CODES.has(originalCode) ||
    [cause, meta, driverAdapterError].some((inner) => isStorageFull(inner, depth + 1))
  );
}

/** Returns the error of a request that could not be stored. */
export const storageFull = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    code: "resource_unavailable",
    reason: "storage_full",
    message:
      "The request was not stored because the platform's disk is full. Retry after the operator has freed disk space.",
    cause,
  });

import { DomainError } from "./domain-error.ts";
import { hasErrorCode } from "./error-codes.ts";

/** PostgreSQL's disk_full, and the file system's codes for missing free space, free inodes or quota. */
const CODES: ReadonlySet<unknown> = new Set(["53100", "ENOSPC", "EDQUOT"]);

/** Returns whether a write failed because a disk is full, as PostgreSQL, Prisma or the file system reports it. */
export const isStorageFull = (error: unknown): boolean => hasErrorCode(error, CODES);

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

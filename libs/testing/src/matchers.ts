import { expect } from "@jest/globals";

/**
 * Matches a `DomainError` by some of its fields: `expect(f).toThrow(domainError({ reason }))`, `await
 * expect(promise).rejects.toEqual(domainError({ kind }))`.
 */
export function domainError(expected: { kind?: string; reason?: string; code?: string; retryable?: boolean }): Error {
  return expect.objectContaining({ name: "DomainError", ...expected }) as unknown as Error;
}

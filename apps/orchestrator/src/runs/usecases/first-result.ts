import { isDomainError } from "@millwright/errors";
import type { OnceRequest } from "../../storage/domain/once-request.ts";

export type FirstResultDeps = {
  /** Returns the result of an earlier identical request, or undefined. Errors: idempotency_mismatch (conflict). */
  firstResult(request: OnceRequest): Promise<unknown>;
};

/**
 * Returns the result of an earlier identical request after this one failed with `error`: what it names may have been
 * deleted since. Throws `error` if there was none.
 */
export async function firstResultOr(deps: FirstResultDeps, request: OnceRequest, error: unknown): Promise<unknown> {
  const result = isDomainError(error) ? await deps.firstResult(request) : undefined;
  if (result === undefined) throw error;
  return result;
}

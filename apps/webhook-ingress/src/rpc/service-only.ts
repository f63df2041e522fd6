import type { Caller } from "@millwright/caller";
import { DomainError } from "@millwright/errors";

/** Errors: service_caller_required (permission_denied). */
export function assertService(caller: Caller): void {
  if (caller.principal.type !== "service")
    throw new DomainError({
      kind: "permission_denied",
      reason: "service_caller_required",
      message: "This call requires a service as the caller.",
    });
}

import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import { callerOf } from "@millwright/rpc";

/**
 * Serves one RPC: names the caller and refuses texts that no column can hold (PostgreSQL knows no NUL).
 *
 * Errors: invalid_text.
 */
export const served =
  <I extends object, O>(serve: (request: I, caller: Caller) => Promise<O>) =>
  async (request: I, context: HandlerContext): Promise<O> => {
    if (Object.values(request).some(hasNul)) throw invalidArgument("invalid_text", "A text of the request contains the character NUL.");
    return serve(request, callerOf(context));
  };

function hasNul(value: unknown): boolean {
  if (typeof value === "string") return value.includes("\0");
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return false;
  return Object.values(value).some(hasNul);
}

/** Errors: service_only (permission_denied). */
export function assertService(caller: Caller): void {
  if (caller.principal.type !== "service") throw new DomainError({ kind: "permission_denied", reason: "service_only", message: "Only services may ask this." });
}

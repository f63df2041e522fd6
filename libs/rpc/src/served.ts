import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { callerOf } from "./context.ts";

/**
 * Wraps the implementation of an RPC: passes the caller and rejects texts with NUL, which PostgreSQL cannot store.
 *
 * Errors: invalid_text.
 */
export const served =
  <I, O>(serve: (request: I, caller: Caller) => Promise<O>) =>
  async (request: I, context: HandlerContext): Promise<O> => {
    if (hasNul(request))
      throw invalidArgument(
        "invalid_text",
        "The request contains a text with the character NUL (U+0000), which cannot be stored. Remove it.",
      );
    return serve(request, callerOf(context));
  };

function hasNul(value: unknown): boolean {
  if (typeof value === "string") return value.includes("\0");
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return false;
  return Object.entries(value).some(([name, inner]) => name.includes("\0") || hasNul(inner));
}

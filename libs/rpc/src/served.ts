import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { callerOf } from "./context.ts";

/**
 * Serves one RPC: names the caller and refuses texts that no column can hold (PostgreSQL knows no NUL).
 *
 * Errors: invalid_text.
 */
export const served =
  <I, O>(serve: (request: I, caller: Caller) => Promise<O>) =>
  async (request: I, context: HandlerContext): Promise<O> => {
    if (hasNul(request)) throw invalidArgument("invalid_text", "A text of the request contains the character NUL.");
    return serve(request, callerOf(context));
  };

function hasNul(value: unknown): boolean {
  if (typeof value === "string") return value.includes("\0");
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return false;
  return Object.entries(value).some(([name, inner]) => name.includes("\0") || hasNul(inner));
}

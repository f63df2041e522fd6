import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import type { RequestContext, Scope, Span } from "@millwright/telemetry";

/** Set by the server for every call. */
export const REQUEST = createContextKey<RequestContext | undefined>(undefined, { description: "request context" });

/** The scope and the span of the call, from authentication to its end. */
export const CALL = createContextKey<{ readonly scope: Scope; readonly span: Span } | undefined>(undefined, {
  description: "scope and span of the call",
});

/** Returns the request context of an RPC implementation. */
export function requestContextOf(context: HandlerContext): RequestContext {
  const request = context.values.get(REQUEST);
  if (!request) throw new Error("the RPC was not served through libs/rpc");
  return request;
}

/** Returns the caller. Throws caller_missing (unauthenticated) on servers that permit requests without a caller. */
export function callerOf(context: HandlerContext): Caller {
  const { caller } = requestContextOf(context);
  if (caller) return caller;
  throw new DomainError({
    kind: "unauthenticated",
    reason: "caller_missing",
    message: "The call has no caller token.",
  });
}

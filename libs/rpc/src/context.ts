import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import { newTraceId, type RequestContext } from "@millwright/telemetry";

/** Set at the door of every call. */
export const REQUEST = createContextKey<RequestContext | undefined>(undefined, { description: "request context" });

const TRACE_HEADER = "traceparent";

/** The trace id of the W3C header, or a new one. */
export const traceIdFrom = (header: Headers): string => /^00-([0-9a-f]{32})-/.exec(header.get(TRACE_HEADER) ?? "")?.[1] ?? newTraceId();

/** Puts the trace id into outgoing headers; the span id is made up of it, since spans are not recorded. */
export const setTraceId = (header: Headers, traceId: string): void => header.set(TRACE_HEADER, `00-${traceId}-${traceId.slice(0, 16)}-01`);

/** The request an RPC implementation is serving. */
export function requestContextOf(context: HandlerContext): RequestContext {
  const request = context.values.get(REQUEST);
  if (!request) throw new Error("the RPC was not served through libs/rpc");
  return request;
}

/** Who calls. Errors: caller_missing (unauthenticated) on doors whose verifier lets callers in without one. */
export function callerOf(context: HandlerContext): Caller {
  const { caller } = requestContextOf(context);
  if (caller) return caller;
  throw new DomainError({ kind: "unauthenticated", reason: "caller_missing", message: "The call carries no caller." });
}

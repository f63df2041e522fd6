import type { HandlerContext } from "@connectrpc/connect";
import { notFound } from "@millwright/errors";
import { callerOf } from "@millwright/rpc";

/** Throws unless a service calls in its own name: the allow-list restricts which service may. Errors: run_not_found. */
export function requireService(context: HandlerContext): void {
  if (callerOf(context).principal.type !== "service") throw notFound("run");
}

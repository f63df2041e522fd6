import type { HandlerContext } from "@connectrpc/connect";
import { notFound } from "@millwright/errors";
import { callerOf } from "@millwright/rpc";

/** Throws `run_not_found` unless the caller is a service. The allow-list restricts which services may call. */
export function requireService(context: HandlerContext): void {
  if (callerOf(context).principal.type !== "service") throw notFound("run");
}

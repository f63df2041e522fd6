import { Code, ConnectError } from "@connectrpc/connect";
import { rpc } from "@millwright/contracts";
import { DomainError, isDomainError } from "@millwright/errors";
import { fromConnectError } from "@millwright/rpc";

/** Connect codes that say nothing about the request itself: the same one may succeed later. */
const PASSING = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Canceled,
  Code.Unknown,
  Code.Internal,
  Code.ResourceExhausted,
]);

/**
 * Any error of a call to the platform, as our one type; `retryable` tells whether the same call may be sent again. Unlike between services,
 * proxies stand on the way: an answer without our detail is judged by its code, and only what may pass is retried.
 */
export function platformError(error: unknown): DomainError {
  if (isDomainError(error)) return error;
  if (!(error instanceof ConnectError)) return ours(error);
  if (isDomainError(error.cause)) return error.cause; // thrown inside an interceptor
  if (error.findDetails(rpc.ErrorDetailSchema).length > 0) return fromConnectError(error);
  if (error.code === Code.Unauthenticated)
    return new DomainError({
      kind: "unauthenticated",
      reason: "session_invalid",
      message: error.rawMessage,
      cause: error,
    });
  if (PASSING.has(error.code))
    return new DomainError({
      kind: "unavailable",
      reason: "platform_unavailable",
      message: "The platform cannot be reached.",
      cause: error,
    });
  return new DomainError({
    kind: "internal",
    reason: "platform_refused",
    message: error.rawMessage,
    retryable: false,
    cause: error,
  });
}

/** A fault of the worker itself: sending the same again would not help. */
const ours = (cause: unknown): DomainError =>
  new DomainError({
    kind: "internal",
    reason: "worker_internal",
    message: "The worker failed.",
    retryable: false,
    cause,
  });

import { Code, ConnectError } from "@connectrpc/connect";
import { rpc } from "@millwright/contracts";
import { DomainError, isDomainError } from "@millwright/errors";
import { fromConnectError } from "@millwright/rpc";

/** Connect codes that do not depend on the request: the same request may succeed later. */
const TRANSIENT = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Canceled,
  Code.Unknown,
  Code.Internal,
  Code.ResourceExhausted,
]);

/**
 * Converts any error of a call to the platform to a `DomainError`. `retryable` states whether the same call may be sent
 * again. Unlike between services, there may be proxies in between: a response without the platform's error detail is
 * classified by its code, and only transient errors are retried.
 */
export function platformError(error: unknown): DomainError {
  if (isDomainError(error)) return error;
  if (!(error instanceof ConnectError)) return workerError(error);
  if (isDomainError(error.cause)) return error.cause; // thrown inside an interceptor
  if (error.findDetails(rpc.ErrorDetailSchema).length > 0) return fromConnectError(error);
  if (error.code === Code.Unauthenticated)
    return new DomainError({
      kind: "unauthenticated",
      reason: "session_invalid",
      message: error.rawMessage,
      cause: error,
    });
  if (TRANSIENT.has(error.code))
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

/** Returns an error of the worker itself, which a retry would not resolve. */
const workerError = (cause: unknown): DomainError =>
  new DomainError({
    kind: "internal",
    reason: "worker_internal",
    message: "The worker failed.",
    retryable: false,
    cause,
  });

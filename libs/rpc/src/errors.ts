import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { rpc } from "@millwright/contracts";
import { DomainError, ERROR_KINDS, isDomainError, isErrorKind, type ErrorKindName } from "@millwright/errors";

/** Converts our error for the network: the Connect code, and everything else in one detail. The cause is not sent. */
export function toConnectError(error: DomainError): ConnectError {
  const detail = create(rpc.ErrorDetailSchema, {
    kind: error.kind,
    code: error.code,
    reason: error.reason,
    message: error.message,
    retryable: error.retryable,
    metadata: { ...error.metadata },
    detailsJson: error.details.length > 0 ? JSON.stringify(error.details) : "",
    ...(error.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: error.retryAfterSeconds }),
  });
  const code = ERROR_KINDS[error.kind].connect as Code;
  return new ConnectError(error.message, code, undefined, [{ desc: rpc.ErrorDetailSchema, value: detail }]);
}

/**
 * Converts the error of a failed call: the upstream service's own error if it sent one, else `unavailable` if it was
 * unreachable or timed out, else `internal`. A kind unknown to this version becomes `internal`.
 */
export function fromConnectError(error: unknown): DomainError {
  if (isDomainError(error)) return error;
  const connectError = ConnectError.from(error);
  const [detail] = connectError.findDetails(rpc.ErrorDetailSchema);
  if (detail) return fromDetail(detail, error);
  return fromCode(isUnreachable(connectError) ? Code.Unavailable : connectError.code, error);
}

function fromDetail(detail: rpc.ErrorDetail, cause: unknown): DomainError {
  return new DomainError({
    kind: isErrorKind(detail.kind) ? detail.kind : "internal",
    reason: detail.reason,
    message: detail.message,
    code: detail.code,
    retryable: detail.retryable,
    metadata: detail.metadata,
    ...(detail.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: detail.retryAfterSeconds }),
    details: parseDetails(detail.detailsJson),
    cause,
  });
}

function parseDetails(json: string): unknown[] {
  if (json === "") return [];
  const parsed: unknown = JSON.parse(json);
  return Array.isArray(parsed) ? parsed : [];
}

const UNREACHABLE: ReadonlySet<unknown> = new Set(
  "ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN".split(" "),
);

/** Returns whether an error in the chain of causes is a network error; Connect recognises only some of these codes. */
export function isUnreachable(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > 5) return false;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return UNREACHABLE.has(code) || isUnreachable(cause, depth + 1);
}

const UNANSWERED: Partial<Record<Code, { kind: ErrorKindName; reason: string; message: string }>> = {
  [Code.Unavailable]: {
    kind: "unavailable",
    reason: "service_unavailable",
    message: "A service of the platform is not reachable. Retry in a few seconds.",
  },
  [Code.DeadlineExceeded]: {
    kind: "unavailable",
    reason: "deadline_exceeded",
    message: "A service of the platform did not respond in time. Retry in a few seconds.",
  },
  [Code.Canceled]: {
    kind: "unavailable",
    reason: "call_cancelled",
    message: "The request was cancelled before a response was sent.",
  },
  [Code.Aborted]: {
    kind: "unavailable",
    reason: "service_unavailable",
    message: "A service of the platform is not reachable. Retry in a few seconds.",
  },
};

const fromCode = (code: Code, cause: unknown): DomainError =>
  new DomainError({
    ...(UNANSWERED[code] ?? {
      kind: "internal",
      reason: "unexpected_answer",
      message: "An unexpected error occurred. Retry, and report the trace_id to the operator if it persists.",
    }),
    cause,
  });

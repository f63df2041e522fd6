/**
 * Connect's status codes by name; plain numbers, so that this package has no dependencies. Checked against the library
 * in libs/rpc.
 */
export const CONNECT_CODES = {
  InvalidArgument: 3,
  NotFound: 5,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  Unauthenticated: 16,
} as const;

/** The mapping of one kind of error: on the wire, over HTTP, in the public catalog, and for a client that retries. */
export type ErrorKind = {
  /** Connect (gRPC) status code. Less specific than the kind: never derive the kind from it. */
  readonly connect: number;
  /** HTTP status of the public response. */
  readonly status: number;
  /** Default code of the public catalog; an error may set a more specific one. */
  readonly code: string;
  /** Whether a retry of the identical request may succeed; an error may override it. */
  readonly retryable: boolean;
};

const Code = CONNECT_CODES;

/** The only mapping from error kinds to status codes. `code` is the public catalog of problem bodies. */
export const ERROR_KINDS = {
  invalid_argument: { connect: Code.InvalidArgument, status: 400, code: "invalid_request", retryable: false },
  unauthenticated: { connect: Code.Unauthenticated, status: 401, code: "authentication_required", retryable: false },
  permission_denied: { connect: Code.PermissionDenied, status: 403, code: "not_authorized", retryable: false },
  feature_off: { connect: Code.PermissionDenied, status: 403, code: "feature_not_available", retryable: false },
  wrong_method: { connect: Code.Unimplemented, status: 405, code: "invalid_request", retryable: false },
  not_found: { connect: Code.NotFound, status: 404, code: "resource_not_found", retryable: false },
  conflict: { connect: Code.FailedPrecondition, status: 409, code: "conflict", retryable: false },
  too_large: { connect: Code.ResourceExhausted, status: 413, code: "payload_too_large", retryable: false },
  unsupported: { connect: Code.FailedPrecondition, status: 422, code: "operation_not_supported", retryable: false },
  rate_limited: { connect: Code.ResourceExhausted, status: 429, code: "rate_limited", retryable: true },
  // The specification lists no 503: an absent upstream service is a 500 that may be retried.
  unavailable: { connect: Code.Unavailable, status: 500, code: "internal_error", retryable: true },
  internal: { connect: Code.Internal, status: 500, code: "internal_error", retryable: true },
} as const satisfies Record<string, ErrorKind>;

/** The name of a kind of error, the key of `ERROR_KINDS`. */
export type ErrorKindName = keyof typeof ERROR_KINDS;

/** Returns whether a text (from the wire) is a known kind. */
export const isErrorKind = (name: string): name is ErrorKindName => Object.hasOwn(ERROR_KINDS, name);

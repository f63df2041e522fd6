/** Connect's status codes by name; kept as plain numbers so that this package depends on nothing. Checked against the library in libs/rpc. */
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

/** What one kind of error means on the wire, over HTTP, in the public catalog, and to a retrying client. */
export type ErrorKind = {
  /** Connect (gRPC) status code. Coarser than the kind: never derive the kind from it. */
  readonly connect: number;
  /** HTTP status of the public answer. */
  readonly status: number;
  /** Default code of the public catalog; an error may name a finer one itself. */
  readonly code: string;
  /** May the identical request succeed later? An error may decide otherwise itself. */
  readonly retryable: boolean;
};

const Code = CONNECT_CODES;

/** The only place where meaning becomes a number. `code` is the public catalog of problem bodies. */
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

/** Whether a text (from the wire) names a kind we know. */
export const isErrorKind = (name: string): name is ErrorKindName => Object.hasOwn(ERROR_KINDS, name);

import { withoutCredentials } from "./credential-forms.ts";
import { DomainError, isDomainError } from "./domain-error.ts";
import { ERROR_KINDS } from "./kinds.ts";
import { isLostConnection, serviceUnavailable } from "./lost-connection.ts";
import { databaseBusy, isOverloaded } from "./overloaded.ts";
import { isStorageFull, storageFull } from "./storage-full.ts";

/** The public catalog: title and description of each code. */
export const ERROR_CATALOG: Readonly<Record<string, { title: string; about: string }>> = {
  invalid_request: {
    title: "Invalid request",
    about: "The body or a parameter is malformed, or the current state of the resource does not permit the request.",
  },
  integration_not_configured: {
    title: "Integration not configured",
    about: "An integration that the request needs is not fully set up.",
  },
  authentication_required: {
    title: "Authentication required",
    about: "The API key is missing, unknown, revoked or expired. Send it as `Authorization: Bearer <key>`.",
  },
  external_authentication_required: {
    title: "External authentication required",
    about: "A code host or tracker has not been authorised.",
  },
  not_authorized: {
    title: "Not authorized",
    about: "The key is valid, but its role or scopes do not permit the request.",
  },
  insufficient_credits: { title: "Insufficient credits", about: "The team has no credits left." },
  budget_exceeded: { title: "Budget exceeded", about: "The team's spending cap is reached." },
  feature_not_available: { title: "Feature not available", about: "The feature is switched off for the team." },
  integration_disabled: { title: "Integration disabled", about: "The integration is switched off." },
  content_policy_violation: { title: "Content policy violation", about: "The content is not allowed." },
  resource_not_found: {
    title: "Not found",
    about: "The resource does not exist, was deleted, or is not visible to the caller.",
  },
  conflict: {
    title: "Conflict",
    about:
      "The current state of the resource does not permit the request. `retryable` states whether a retry may succeed.",
  },
  operation_not_supported: {
    title: "Operation not supported",
    about: "This kind of run or format does not support the operation.",
  },
  unknown_attachment: {
    title: "Unknown attachment",
    about: "The follow-up names an attachment that was not prepared for the newest run.",
  },
  resource_unavailable: {
    title: "Resource unavailable",
    about: "Capacity or infrastructure is temporarily unavailable. Retry later.",
  },
  environment_setup_failed: {
    title: "Environment setup failed",
    about: "Cloning, a setup command or the start of a tool server failed.",
  },
  internal_error: {
    title: "Internal error",
    about: "An unexpected error occurred. Search the logs for `trace_id`.",
  },
  infrastructure_timeout: { title: "Infrastructure timeout", about: "The run exceeded its maximum run time." },
  agent_process_failed: { title: "Agent process failed", about: "The agent's process died after setup." },
  agent_reported_failure: {
    title: "Agent reported failure",
    about: "The agent itself, or a step of its script, reported that the work failed.",
  },
  agent_stream_network_error: { title: "Agent stream lost", about: "A network error interrupted the model stream." },
  agent_stream_failure: { title: "Agent stream failure", about: "The model stream ended with a reported failure." },
  rate_limited: {
    title: "Too many requests",
    about: "The request rate exceeds its limit. Wait for the number of seconds in `Retry-After`.",
  },
  payload_too_large: { title: "Payload too large", about: "The body exceeds the limit of this endpoint." },
};

const DEFAULT_RETRY_AFTER_SECONDS = 1;

/** A problem body. `reason` is an extension: more specific than the code, stable. */
export type ProblemBody = {
  type: string;
  title: string;
  status: number;
  error: string;
  detail?: string;
  instance?: string;
  retryable: boolean;
  trace_id: string;
  error_code: string;
  reason: string;
  diagnostics?: unknown[];
};

export type ProblemContext = {
  readonly publicUrl: string;
  readonly path: string;
  readonly traceId: string;
  /** A create without an Idempotency-Key: after a 5xx it may have happened, so clients must not retry it. */
  readonly isUnrepeatable: boolean;
  /** The operation must not be retried automatically: every problem has `x-should-retry: false`. */
  readonly isNeverRetried?: boolean;
};

/**
 * Returns the error as a DomainError. Any other error is `internal`, unless a connection was lost, a database is
 * overloaded or a disk is full: its text stays private.
 */
export function asDomainError(error: unknown): DomainError {
  if (isDomainError(error)) return error;
  if (isStorageFull(error)) return storageFull(error);
  if (isLostConnection(error)) return serviceUnavailable(error);
  if (isOverloaded(error)) return databaseBusy(error);
  return new DomainError({
    kind: "internal",
    reason: "internal",
    message: "An unexpected error occurred. Retry, and report the trace_id to the operator if it persists.",
    cause: error,
  });
}

/** Returns whether a database or a service did not respond, which a retry may solve, unlike a full disk. */
export const isDependencyAbsent = ({ kind, reason }: DomainError): boolean =>
  kind === "unavailable" && reason !== "storage_full";

/** Translates an error into a public response. */
export function problemOf(
  error: DomainError,
  context: ProblemContext,
): { status: number; headers: Record<string, string>; body: ProblemBody } {
  const { status } = ERROR_KINDS[error.kind];
  const retryable = error.retryable && !context.isNeverRetried && !(context.isUnrepeatable && status >= 500);
  const message = withoutCredentials(error.message);
  const title = ERROR_CATALOG[error.code]?.title ?? error.code;
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (context.isNeverRetried || status === 409 || status === 429 || status >= 500)
    headers["x-should-retry"] = String(retryable);
  if (status === 429 || (retryable && (status === 409 || error.kind === "unavailable")))
    headers["retry-after"] = String(error.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS);
  return {
    status,
    headers,
    body: {
      type: `${context.publicUrl}/errors/${error.code}`,
      title,
      status,
      error: message ? `${title} (${message})` : title,
      ...(message ? { detail: message } : {}),
      instance: withoutCredentials(context.path),
      retryable,
      trace_id: context.traceId,
      error_code: error.code,
      reason: error.reason,
      ...(error.details.length > 0 ? { diagnostics: [...error.details] } : {}),
    },
  };
}

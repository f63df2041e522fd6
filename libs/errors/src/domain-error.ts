import { ERROR_KINDS, type ErrorKindName } from "./kinds.ts";

/** The arguments of an error. Everything but `cause` may reach the client. */
export type DomainErrorInit = {
  kind: ErrorKindName;
  /** lower_snake, unique, stable: programs and tests compare it. */
  reason: string;
  /** Public text; may change. */
  message: string;
  /** A more specific code of the public catalog, such as "unknown_attachment". */
  code?: string;
  /** Overrides the kind's default. */
  retryable?: boolean;
  /** Public facts for programs. */
  metadata?: Record<string, string>;
  retryAfterSeconds?: number;
  /** Public structured details (JSON values), such as a list of diagnostics. */
  details?: readonly unknown[];
  /** Private: logged once at the boundary, never sent. */
  cause?: unknown;
};

/** The only error type that use cases and rules throw; any other error that leaves a service is `internal`. */
export class DomainError extends Error {
  readonly kind: ErrorKindName;
  readonly reason: string;
  readonly code: string;
  readonly retryable: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterSeconds: number | undefined;
  readonly details: readonly unknown[];

  constructor(init: DomainErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "DomainError";
    this.kind = init.kind;
    this.reason = init.reason;
    this.code = init.code ?? ERROR_KINDS[init.kind].code;
    this.retryable = init.retryable ?? ERROR_KINDS[init.kind].retryable;
    this.metadata = init.metadata ?? {};
    this.retryAfterSeconds = init.retryAfterSeconds;
    this.details = init.details ?? [];
  }
}

/** Returns whether an error is a DomainError, also across two loaded copies of this module. */
export const isDomainError = (error: unknown): error is DomainError =>
  error instanceof DomainError ||
  (error instanceof Error && error.name === "DomainError" && "kind" in error && "reason" in error);

/**
 * Returns the error for both "absent" and "not visible to the caller": both must be indistinguishable. `resource` is
 * lower_snake ("agent_identity"); the reason is `<resource>_not_found`.
 */
export const notFound = (resource: string): DomainError =>
  new DomainError({
    kind: "not_found",
    reason: `${resource}_not_found`,
    message: `No such ${resource.replaceAll("_", " ")}, or it is not visible to you.`,
  });

/** Returns a 400 with a specific reason. */
export const invalidArgument = (reason: string, message: string, metadata?: Record<string, string>): DomainError =>
  new DomainError({ kind: "invalid_argument", reason, message, metadata });

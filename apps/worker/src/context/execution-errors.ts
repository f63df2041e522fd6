import { DomainError } from "@millwright/errors";

/**
 * The worker no longer owns the attempt. It must stop immediately; none of its effects may leave the worker (execution
 * fence).
 */
export class LeaseLost extends DomainError {
  constructor(message = "The lease of this attempt is lost.") {
    super({ kind: "conflict", reason: "lease_lost", message });
    this.name = "LeaseLost";
  }
}

/** The run was cancelled, or the worker is stopping. Used as the abort reason of `ExecutionContext.signal`. */
export class ExecutionCancelled extends DomainError {
  /**
   * "cancelled" by a user or a rule, "worker_stopping" at the end of a drain, "timeout" at the execution's time limit.
   */
  readonly stopCause: "cancelled" | "worker_stopping" | "timeout";

  constructor(cause: "cancelled" | "worker_stopping" | "timeout", message: string) {
    super({ kind: "conflict", reason: `execution_${cause}`, message });
    this.name = "ExecutionCancelled";
    this.stopCause = cause;
  }
}

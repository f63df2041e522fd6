import { DomainError } from "@millwright/errors";

/** The attempt is no longer ours: stop at once, nothing of it may reach the outside any more (execution fence). */
export class LeaseLost extends DomainError {
  constructor(message = "The lease of this attempt is lost.") {
    super({ kind: "conflict", reason: "lease_lost", message });
    this.name = "LeaseLost";
  }
}

/** The lease was not renewed for too long: no outside effect may start until it is renewed again. */
export class OutboundGateClosed extends DomainError {
  constructor() {
    super({
      kind: "unavailable",
      reason: "doors_closed",
      message: "The lease was not renewed in time; outside effects are suspended.",
    });
    this.name = "OutboundGateClosed";
  }
}

/** Someone cancelled the run, or the worker stops; the abort reason of `ExecutionContext.signal`. */
export class ExecutionCancelled extends DomainError {
  /** "cancelled" by a person or a rule, "worker_stopping" at the end of a drain, "timeout" at the execution's time limit. */
  readonly stopCause: "cancelled" | "worker_stopping" | "timeout";

  constructor(cause: "cancelled" | "worker_stopping" | "timeout", message: string) {
    super({ kind: "conflict", reason: `execution_${cause}`, message });
    this.name = "ExecutionCancelled";
    this.stopCause = cause;
  }
}

/** The sandbox of an execution did not start. Another attempt, perhaps on another worker, may succeed; the message is public. */
export class SandboxStartFailed extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "SandboxStartFailed";
  }
}

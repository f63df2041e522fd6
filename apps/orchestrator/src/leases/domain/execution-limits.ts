import type { RunStatus } from "../../runs/domain/run.ts";

export type ExecutionLimit = "setup" | "execution" | "stall" | "stall_warning" | "debug";

/** An execution that exceeded a limit. `idleMs`: time since its last event; null before the agent started. */
export type ExceededLimit = {
  readonly executionId: number;
  readonly attempt: number;
  readonly limit: ExecutionLimit;
  readonly idleMs: number | null;
};

/**
 * The terminal state and status of a run whose execution exceeded a limit. A slow setup is the user's failure (FAILED);
 * the other limits are the platform's (ERROR).
 */
export const LIMIT_OUTCOMES: Readonly<
  Record<Exclude<ExecutionLimit, "stall_warning" | "debug">, { state: "FAILED" | "ERROR"; status: RunStatus }>
> = {
  setup: {
    state: "FAILED",
    status: {
      message: "The setup of the environment took too long.",
      errorCode: "environment_setup_failed",
      retryable: false,
    },
  },
  execution: {
    state: "ERROR",
    status: {
      message: "The execution exceeded its maximum run time.",
      errorCode: "infrastructure_timeout",
      retryable: false,
    },
  },
  stall: {
    state: "ERROR",
    status: {
      message: "The agent produced no events for too long.",
      errorCode: "infrastructure_timeout",
      retryable: false,
    },
  },
};

import type { Clock } from "@millwright/clock";
import type { Logger, Tracer } from "@millwright/telemetry";
import type { WorkerConfig } from "./config.ts";
import type { RunExecution } from "./executions/execution-context.ts";
import type { SandboxHost } from "./sandbox/spec.ts";
import type { Timers } from "./time.ts";

/** What a worker is made of. */
export type WorkerOptions = {
  readonly config: WorkerConfig;
  readonly sandbox: {
    readonly kind: "bwrap" | "none";
    readonly features: readonly string[];
    readonly host?: SandboxHost;
  };
  readonly runExecution: RunExecution;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** Records what executions do; absent: nothing. */
  readonly tracer?: Tracer;
};

export type RunningWorker = {
  /** Takes no more work and lets running executions finish, for at most the configured time; then returns their leases. Resolves when nothing runs. */
  drain(): Promise<void>;
  /** Kills every sandbox and returns the leases, for the end of the process. Resolves within seconds, also when the platform does not answer. */
  leaveNow(): Promise<void>;
  /** Resolves when the worker has ended: drained, or with the platform's refusal to know it. */
  readonly ended: Promise<WorkerEnd>;
};

export type WorkerEnd = {
  readonly refusal?: Error;
  /** In one-run mode: whether its execution was begun, and whether the platform has been told how it ended. */
  readonly oneRun?: "not_begun" | "left" | "reported";
};

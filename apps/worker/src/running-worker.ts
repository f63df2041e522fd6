import type { Clock } from "@millwright/clock";
import type { Logger, Tracer } from "@millwright/telemetry";
import type { WorkerConfig } from "./config.ts";
import type { RunExecution } from "./context/execution-context.ts";
import type { SandboxHost } from "./sandbox/spec.ts";
import type { Timers } from "./time/timers.ts";

/** The dependencies of a worker. */
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
  /** The tracer of executions; absent: no tracing. */
  readonly tracer?: Tracer;
};

export type RunningWorker = {
  /**
   * Stops accepting work and lets running executions finish within the configured time, then returns their leases.
   * Resolves when nothing runs.
   */
  drain(): Promise<void>;
  /**
   * Kills every sandbox and returns the leases before the process ends. Resolves within seconds, even if the platform
   * does not respond.
   */
  stopNow(): Promise<void>;
  /** Resolves when the worker has ended: after a drain, or because the platform refused the worker. */
  readonly ended: Promise<WorkerEnd>;
};

export type WorkerEnd = {
  readonly refusal?: Error;
  /** In one-run mode: whether the execution was started, and whether its result was reported to the platform. */
  readonly oneRun?: "not_started" | "abandoned" | "reported";
};

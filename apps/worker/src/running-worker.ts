export type RunningWorker = {
  /** Takes no more work and lets what runs come to its end, for at most the configured time. Resolves when nothing runs. */
  drain(): Promise<void>;
  /** Kills every sandbox, for the end of the process. */
  killNow(): void;
  /** Resolves when the worker has ended: drained, or with the platform's refusal to know it. */
  readonly ended: Promise<WorkerEnd>;
};

export type WorkerEnd = {
  readonly refusal?: Error;
  /** In one-run mode: whether its execution was begun, and whether the platform has been told how it ended. */
  readonly oneRun?: "not_begun" | "left" | "reported";
};

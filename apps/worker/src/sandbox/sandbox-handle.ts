/** A running sandbox in the form that the worker requires. */
export type SandboxHandle = {
  /**
   * The host process id; with `none` also the id of the process group. It is stored on disk so that the next worker can
   * kill what remains after a SIGKILL of this one.
   */
  readonly pid: number;
  /**
   * `NAME=value` that is set in the environment of the sandbox's processes, or of those whose exit ends the others. It is
   * stored with the pid, so that the next worker can find and kill leftovers.
   */
  readonly mark?: string;
  /** Sends SIGTERM to the processes inside. */
  terminate(): void;
  /** Kills everything inside immediately. */
  kill(): void;
  /** Resolves (never rejects) when no process of the sandbox remains. */
  readonly gone: Promise<void>;
};

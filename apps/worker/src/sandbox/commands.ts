import type { ExecValue, OpenValue, OutputValue } from "./init/protocol.ts";

export type ExecOptions = {
  readonly cwd?: string;
  readonly timeoutMs?: number;
  /** When aborted, the command's process group is killed and the result has `stopped`. */
  readonly signal?: AbortSignal;
  readonly env?: Record<string, string>;
};

/** A background command. All methods reject with `SandboxGone` after the sandbox has ended. */
export type BackgroundCommand = {
  /** Resolves when the command has ended, with its unread output. */
  readonly ended: Promise<ExecValue>;
  /** Returns its output since the last call. */
  output(): Promise<OutputValue>;
  /** Kills it and its process group. */
  stop(): Promise<void>;
};

/**
 * A program with piped standard input and output. All methods reject with `SandboxGone` after the sandbox has ended.
 */
export type Program = {
  /** How the program ended. Rejects with `SandboxRefusal` if it could not be started. */
  readonly ended: Promise<OpenValue>;
  /**
   * Resolves when the data is written to the program's pipe, which may take long if the program does not read. Throws
   * `SandboxRefusal` after the program's end.
   */
  put(data: Uint8Array): Promise<void>;
  /** Returns its next output; undefined at the end. Output is delivered only on request. */
  take(): Promise<Buffer | undefined>;
  /** Closes its standard input: most programs then exit. */
  end(): Promise<void>;
  /** Kills it and its process group. */
  stop(): Promise<void>;
};

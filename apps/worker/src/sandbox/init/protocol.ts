/**
 * The protocol between the worker and `sandbox-init`: JSON lines, with requests on standard input and responses on
 * standard output. This directory is mounted into the sandbox and run there by the platform's Node.js. Its files may
 * therefore import only Node.js modules and each other.
 */

/** The maximum length of a line in either direction. */
export const LINE_BYTES_MAX = 2 * 1024 * 1024;
/** The maximum number of bytes of a file in one read or write. */
export const CHUNK_BYTES_MAX = 512 * 1024;
/** The maximum number of bytes of a command's output: the first and the last half of it. */
export const OUTPUT_BYTES_MAX = 64 * 1024;
/** The maximum number of entries in one listing. */
export const LIST_ENTRIES_MAX = 1_000;
/** The maximum total size of the paths in one listing. */
export const LIST_BYTES_MAX = 1024 * 1024;
/** The delay between SIGTERM and SIGKILL of a process group. */
export const KILL_AFTER_MS = 2_000;

/**
 * The first message. `secrets` are masked in the output of commands before it is truncated. `env` is the complete
 * environment of every command; it is sent in this message so that it appears in no argument list.
 */
export type HelloRequest = {
  id: number;
  op: "hello";
  env: Record<string, string>;
  relays: readonly RelayRequest[];
  secrets: readonly string[];
};
/** A port of the sandbox's loopback interface that is forwarded to a Unix socket. */
export type RelayRequest = { port: number; socket: string };
/** Runs a shell command, or a program with arguments, in its own process group. */
export type ExecRequest = {
  id: number;
  op: "exec";
  run: { command: string } | { argv: string[] };
  cwd: string;
  timeoutMs: number;
  env?: Record<string, string>;
};
/**
 * Terminates a running exec: SIGTERM to its group, SIGKILL after `KILL_AFTER_MS`. The response is immediate; the exec
 * has its own.
 */
export type StopRequest = { id: number; op: "stop"; exec: number };
/**
 * Returns the output of a running exec since the last request. The exec's own response then contains only later output.
 */
export type OutputRequest = { id: number; op: "output"; exec: number };
/**
 * Starts a program with piped input and output. The response is sent when the program has ended. Its environment is
 * that of commands plus `env`.
 */
export type OpenRequest = { id: number; op: "open"; argv: string[]; cwd: string; env: Record<string, string> };
/**
 * Bytes (base64) for the standard input of an opened program. The response is sent when they are written. `end` closes
 * the input.
 */
export type PutRequest = { id: number; op: "put"; open: number; data: string; end: boolean };
/**
 * Returns the standard output of an opened program since the last request. The response is sent when there is output,
 * or at its end.
 */
export type TakeRequest = { id: number; op: "take"; open: number };
/**
 * Terminates an opened program and everything that it started. The response is immediate; the open request has its own.
 */
export type CloseRequest = { id: number; op: "close"; open: number };
/** Sends SIGTERM to every process group. */
export type TerminateRequest = { id: number; op: "terminate" };
/**
 * The paths of file operations must be inside `root`. Symbolic links are followed and checked; relative paths start at
 * `root`.
 */
export type ReadRequest = { id: number; op: "read"; root: string; path: string; offset: number; length: number };
export type WriteRequest = { id: number; op: "write"; root: string; path: string; data: string; append: boolean };
export type StatRequest = { id: number; op: "stat"; root: string; path: string };
export type ListRequest = { id: number; op: "list"; root: string; path: string; pattern: string; depth: number };

export type Request =
  | HelloRequest
  | ExecRequest
  | StopRequest
  | OutputRequest
  | OpenRequest
  | PutRequest
  | TakeRequest
  | CloseRequest
  | TerminateRequest
  | ReadRequest
  | WriteRequest
  | StatRequest
  | ListRequest;

export type HelloValue = { pid: number; shell: string };
export type ExecValue = {
  /** Null if a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stopped: boolean;
  /** Standard output and standard error in order of arrival; the middle may be omitted. */
  output: string;
  truncated: boolean;
  /** The working directory of the shell when it ended; for programs, the initial directory. */
  cwd: string;
};
export type OutputValue = { output: string; truncated: boolean; running: boolean };
/** How an opened program ended. `errors` is the end of its standard error. */
export type OpenValue = { exitCode: number | null; signal: string | null; errors: string };
/** `data` is base64, at most `CHUNK_BYTES_MAX` bytes. */
export type TakeValue = { data: string; ended: boolean };
export type ReadValue = { data: string; sizeBytes: number };
export type WriteValue = { created: boolean };
export type StatValue = { type: FileType; sizeBytes: number };
export type ListValue = { entries: ListEntry[]; truncated: boolean };
export type ListEntry = { path: string; type: FileType; sizeBytes: number };
export type FileType = "file" | "directory" | "link" | "other" | "absent";

/** Why a request failed. */
export type FaultCode =
  | "outside_workspace"
  | "not_found"
  | "not_a_file"
  | "not_a_directory"
  | "no_such_directory"
  | "cannot_start"
  | "invalid_request"
  | "io_error";
export type ResponseMessage =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; code: string; message: string };

/** A failure that is reported to the other side by its code. */
export class Fault extends Error {
  readonly code: FaultCode;
  constructor(code: FaultCode, message: string) {
    super(message);
    this.code = code;
  }
}

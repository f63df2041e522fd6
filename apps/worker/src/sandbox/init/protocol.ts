/**
 * The protocol between the worker and `sandbox-init`: JSON lines, requests on its standard input, responses on its
 * standard output. This directory is mounted into the sandbox and run there by our own Node, so its files import only
 * Node's modules and each other.
 */

/** No line in either direction may be longer. */
export const LINE_BYTES_MAX = 2 * 1024 * 1024;
/** Most bytes of a file in one read or write. */
export const CHUNK_BYTES_MAX = 512 * 1024;
/** Most bytes of a command's output that are kept: the first half and the last half of it. */
export const OUTPUT_BYTES_MAX = 64 * 1024;
/** Most entries in one listing. */
export const LIST_ENTRIES_MAX = 1_000;
/** Most bytes of their paths together. */
export const LIST_BYTES_MAX = 1024 * 1024;
/** Between TERM and KILL of a process group. */
export const KILL_AFTER_MS = 2_000;

/** The first message. `secrets`: masked in the output of commands, before it is cut. `env` is the complete environment of every command; it comes this way so that no argument list shows it. */
export type HelloRequest = {
  id: number;
  op: "hello";
  env: Record<string, string>;
  relays: readonly RelayRequest[];
  secrets: readonly string[];
};
/** A port of the sandbox's loopback that leads to a unix socket. */
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
 * Ends a running exec: TERM to its group, KILL after `KILL_AFTER_MS`. The response is immediate; the exec has its own.
 */
export type StopRequest = { id: number; op: "stop"; exec: number };
/**
 * Returns the output of a running exec since the last request; the exec's own response then has what came afterwards.
 */
export type OutputRequest = { id: number; op: "output"; exec: number };
/**
 * Starts a program with piped input and output; the response comes when it has ended. Its environment is that of
 * commands plus the given one.
 */
export type OpenRequest = { id: number; op: "open"; argv: string[]; cwd: string; env: Record<string, string> };
/**
 * Bytes (base64) for the standard input of an opened program; the response comes when they are written. `end`: closes
 * it.
 */
export type PutRequest = { id: number; op: "put"; open: number; data: string; end: boolean };
/**
 * Returns the standard output of an opened program since the last request; the response comes when there is output, or
 * at its end.
 */
export type TakeRequest = { id: number; op: "take"; open: number };
/** Ends an opened program and what it has started; answered at once, the opening answers for itself. */
export type CloseRequest = { id: number; op: "close"; open: number };
/** TERM to every group. */
export type TerminateRequest = { id: number; op: "terminate" };
/** Paths of the file operations are inside `root`, symbolic links followed and checked; relative ones start there. */
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
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stopped: boolean;
  /** Standard output and error as they came, cut in the middle. */
  output: string;
  truncated: boolean;
  /** Where the shell was when it ended; the start directory for programs. */
  cwd: string;
};
export type OutputValue = { output: string; truncated: boolean; running: boolean };
/** How an opened program ended; `errors`: the end of its standard error. */
export type OpenValue = { exitCode: number | null; signal: string | null; errors: string };
/** `data` in base64, at most `CHUNK_BYTES_MAX`. */
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
export type Answer =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; code: string; message: string };

/** A failure that the other side is told by code. */
export class Fault extends Error {
  readonly code: FaultCode;
  constructor(code: FaultCode, message: string) {
    super(message);
    this.code = code;
  }
}

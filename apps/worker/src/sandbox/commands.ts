import type { Channel } from "./channel.ts";
import { CHUNK_BYTES_MAX, type ExecValue, type OpenValue, type OutputValue } from "./init/protocol.ts";

/** The longest delay of a timer: 24 days. */
const ENDLESS_MS = 2 ** 31 - 1;

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

/** Starts a shell command in the background. */
export function beginCommand(
  channel: Channel,
  { command, cwd }: { readonly command: string; readonly cwd: string },
): BackgroundCommand {
  const { id, response } = channel.request({ op: "exec", run: { command }, cwd, timeoutMs: ENDLESS_MS });
  response.catch(() => undefined); // callers of `ended` handle the error
  return {
    ended: response,
    output: () => channel.request({ op: "output", exec: id }).response,
    stop: async () => void (await channel.request({ op: "stop", exec: id }).response),
  };
}

/** Starts a program with piped standard input and output. Its input is sent in chunks. */
export function openProgram(
  channel: Channel,
  { argv, cwd, env }: { readonly argv: readonly string[]; readonly cwd: string; readonly env: Record<string, string> },
): Program {
  const { id: program, response } = channel.request({ op: "open", argv: [...argv], cwd, env });
  response.catch(() => undefined); // callers of `ended` handle the error
  const put = async (data: Uint8Array, end: boolean): Promise<void> =>
    void (await channel.request({ op: "put", open: program, data: Buffer.from(data).toString("base64"), end })
      .response);
  return {
    ended: response,
    put: async (data) => {
      for (let offset = 0; offset < data.length; offset += CHUNK_BYTES_MAX)
        await put(data.subarray(offset, offset + CHUNK_BYTES_MAX), false);
    },
    take: async () => {
      const { data, ended } = await channel.request({ op: "take", open: program }).response;
      return ended ? undefined : Buffer.from(data, "base64");
    },
    end: () => put(new Uint8Array(), true),
    stop: async () => void (await channel.request({ op: "close", open: program }).response),
  };
}

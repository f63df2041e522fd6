import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import type { Ending, Stream } from "./local-report.ts";

const TERMINAL = { stdout: process.stdout, stderr: process.stderr } as const;
const KILL_AFTER_MS = 5_000;
const NOT_STARTED = 127;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A command in a process group of its own. Its output is copied to this terminal and this terminal's input to it.
 * Signals to this process are forwarded and mark the command as interrupted by its user.
 */
export class LocalCommand {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #onOutput: (stream: Stream, text: string) => void;
  #interrupted = false;
  #error: Error | undefined;

  constructor(
    [file, ...args]: readonly string[],
    env: NodeJS.ProcessEnv,
    onOutput: (stream: Stream, text: string) => void,
  ) {
    this.#onOutput = onOutput;
    this.#child = spawn(file!, args, { stdio: "pipe", detached: true, env });
    this.#child.on("error", (error) => (this.#error = error));
    this.#child.stdin.on("error", () => {}); // it has closed its standard input
    for (const stream of ["stdout", "stderr"] as const) this.#read(stream);
    process.stdin.pipe(this.#child.stdin);
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
  }

  /** Writes a line to its standard input; false if that is closed. */
  writeLine(text: string): boolean {
    const { stdin } = this.#child;
    if (!stdin.writable) return false;
    stdin.write(`${text}\n`);
    return true;
  }

  /** Resolves when the command has ended and its whole output has been read. */
  async ended(): Promise<Ending> {
    const [code, signal] = (await once(this.#child, "close").catch(() => [NOT_STARTED, null])) as [
      number | null,
      NodeJS.Signals | null,
    ];
    for (const name of SIGNALS) process.off(name, this.#onSignal);
    process.stdin.unpipe(this.#child.stdin);
    process.stdin.destroy();
    if (this.#error) {
      const message = `${this.#error.message}\n`;
      TERMINAL.stderr.write(message);
      this.#onOutput("stderr", message);
      return { exitCode: NOT_STARTED, interrupted: false };
    }
    return {
      exitCode: code ?? undefined,
      signal: signal ?? undefined,
      interrupted: this.#interrupted,
    };
  }

  /** Terminates it, with SIGKILL if it has not ended after 5 seconds. */
  stop(): void {
    this.#signal("SIGTERM");
    setTimeout(() => this.#signal("SIGKILL"), KILL_AFTER_MS).unref();
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (this.#interrupted) this.#signal("SIGKILL");
    this.#interrupted = true;
    this.#signal(signal);
  };

  /** Signals its process group. */
  #signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // gone
    }
  }

  #read(stream: Stream): void {
    const decoder = new StringDecoder("utf8");
    this.#child[stream].on("data", (bytes: Buffer) => {
      TERMINAL[stream].write(bytes);
      const text = decoder.write(bytes);
      if (text !== "") this.#onOutput(stream, text);
    });
  }
}

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import type { Ending, Stream } from "./local-report.ts";

const TERMINAL = { stdout: process.stdout, stderr: process.stderr } as const;
const KILL_AFTER_MS = 5_000;
const NOT_STARTED = 127;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A command that runs here, in a process group of its own. What it writes goes on to this terminal, and what is typed here to it; a
 * signal to this process is passed on, and says that its user wants an end.
 */
export class LocalCommand {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #told: (stream: Stream, text: string) => void;
  #interrupted = false;
  #error: Error | undefined;

  constructor(
    [file, ...args]: readonly string[],
    env: NodeJS.ProcessEnv,
    told: (stream: Stream, text: string) => void,
  ) {
    this.#told = told;
    this.#child = spawn(file!, args, { stdio: "pipe", detached: true, env });
    this.#child.on("error", (error) => (this.#error = error));
    this.#child.stdin.on("error", () => {}); // it reads no more
    for (const stream of ["stdout", "stderr"] as const) this.#read(stream);
    process.stdin.pipe(this.#child.stdin);
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
  }

  /** Hands it a line; false: it reads nothing any more. */
  say(text: string): boolean {
    const { stdin } = this.#child;
    if (!stdin.writable) return false;
    stdin.write(`${text}\n`);
    return true;
  }

  /** How it ended, when everything it wrote has been read. */
  async ended(): Promise<Ending> {
    const [code, signal] = (await once(this.#child, "close").catch(() => [NOT_STARTED, null])) as [
      number | null,
      NodeJS.Signals | null,
    ];
    for (const name of SIGNALS) process.off(name, this.#onSignal);
    process.stdin.unpipe(this.#child.stdin);
    process.stdin.destroy();
    if (this.#error) {
      const said = `${this.#error.message}\n`;
      TERMINAL.stderr.write(said);
      this.#told("stderr", said);
      return { exitCode: NOT_STARTED, interrupted: false };
    }
    return {
      ...(code === null ? {} : { exitCode: code }),
      ...(signal === null ? {} : { signal }),
      interrupted: this.#interrupted,
    };
  }

  /** Ends it, by force if it must be. */
  stop(): void {
    this.#signal("SIGTERM");
    setTimeout(() => this.#signal("SIGKILL"), KILL_AFTER_MS).unref();
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (this.#interrupted) this.#signal("SIGKILL");
    this.#interrupted = true;
    this.#signal(signal);
  };

  /** To it and all that it has started. */
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
      if (text !== "") this.#told(stream, text);
    });
  }
}

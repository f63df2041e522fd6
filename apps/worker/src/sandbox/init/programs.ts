import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { statSync } from "node:fs";
import { signalGroup } from "./exec.ts";
import { HeadTail } from "./head-tail.ts";
import { StreamMasker } from "./mask.ts";
import {
  CHUNK_BYTES_MAX,
  Fault,
  KILL_AFTER_MS,
  type OpenRequest,
  type OpenValue,
  type PutRequest,
  type TakeValue,
} from "./protocol.ts";

/** The maximum size of a program's standard error, which is reported when it ends. */
const ERRORS_BYTES_MAX = 8 * 1024;
/** How long output is read after the program's end. Later output belongs to other processes that have the pipe open. */
const DRAIN_MS = 100;

/**
 * Runs programs that the worker communicates with. Unread output stays in the program's pipe, so a program that writes
 * too much blocks.
 */
export class Programs {
  readonly #running = new Map<number, Conversation>();
  #secrets: readonly string[] = [];

  /** Adds secrets to mask in the programs' standard error. Their standard output is passed on unchanged. */
  addSecrets(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  run({ id, argv: [program, ...args], cwd, env }: OpenRequest, ordinary: Record<string, string>): Promise<OpenValue> {
    if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
      throw new Fault("no_such_directory", "The working directory does not exist.");
    if (program === undefined) throw new Fault("invalid_request", "No program to run.");
    const child = spawn(program, args, {
      cwd,
      env: { ...ordinary, ...env },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const conversation = new Conversation(child, this.#secrets);
    this.#running.set(id, conversation);
    return conversation.ended;
  }

  async put({ open, data, end }: PutRequest): Promise<Record<string, never>> {
    await this.#find(open).put(Buffer.from(data, "base64"), end);
    return {};
  }

  async take(open: number): Promise<TakeValue> {
    const taken = await this.#find(open).take();
    if (taken.ended) this.#running.delete(open);
    return taken;
  }

  stop(open: number): void {
    this.#running.get(open)?.stop();
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const running of this.#running.values()) running.signal(signal);
  }

  #find(open: number): Conversation {
    const found = this.#running.get(open);
    if (!found) throw new Fault("not_found", "No such program was opened.");
    return found;
  }
}

class Conversation {
  readonly ended: Promise<OpenValue>;
  readonly #child: ChildProcessWithoutNullStreams;
  #hasEnded = false;
  #wake: () => void = () => {};

  constructor(child: ChildProcessWithoutNullStreams, secrets: readonly string[]) {
    this.#child = child;
    const [errors, masker] = [new HeadTail(ERRORS_BYTES_MAX), new StreamMasker(secrets)];
    child.stderr.on("data", (chunk: Buffer) => errors.push(masker.push(chunk)));
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
    child.stdout.on("readable", () => this.#wake());
    child.stdout.on("end", () => this.#end());
    this.ended = new Promise((resolve, reject) => {
      child.once("error", (error) => {
        this.#end();
        reject(new Fault("cannot_start", error.message));
      });
      child.once("exit", (exitCode, signal) => {
        signalGroup(child.pid, "SIGKILL"); // also kills what the program has started
        setTimeout(() => {
          this.#end();
          errors.push(masker.end());
          resolve({ exitCode, signal, errors: errors.text().text.trim() });
        }, DRAIN_MS);
      });
    });
  }

  put(data: Buffer, end: boolean): Promise<void> {
    const { stdin } = this.#child;
    if (!stdin.writable) throw new Fault("not_found", "The program has ended.");
    return new Promise((resolve, reject) => {
      const settle = (error?: Error | null): void =>
        error ? reject(new Fault("not_found", "The program no longer reads its input.")) : resolve();
      if (end) stdin.end(data, () => settle());
      else stdin.write(data, settle);
    });
  }

  async take(): Promise<TakeValue> {
    for (;;) {
      const { stdout } = this.#child;
      const data = stdout.read(Math.min(stdout.readableLength, CHUNK_BYTES_MAX)) as Buffer | null;
      if (data && data.length > 0) return { data: data.toString("base64"), ended: false };
      if (this.#hasEnded) return { data: "", ended: true };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  stop(): void {
    this.signal("SIGTERM");
    setTimeout(() => this.signal("SIGKILL"), KILL_AFTER_MS).unref();
  }

  /** Signals the program's group while the program runs. Afterwards its id may belong to another process. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) signalGroup(this.#child.pid, signal);
  }

  #end(): void {
    this.#hasEnded = true;
    this.#wake();
  }
}

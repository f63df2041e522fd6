import type { Program } from "../sandbox/commands.ts";
import { lastLines } from "../sandbox/last-lines.ts";
import type { HarnessEvent, HarnessLink, HarnessSession, HarnessConnection } from "./harness-adapter.ts";

/** Longer lines are ignored; they never end a turn. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;
const STOP_GRACE_MS = 3_000;

export type ProcessDeps = {
  readonly program: Program;
  readonly connect: (link: HarnessLink) => HarnessConnection;
  /** Receives all events except the session. */
  readonly onEvent: (event: Exclude<HarnessEvent, { t: "session" }>) => void;
  /** Called when the process has ended, with the reason for users. */
  readonly onEnd: (why: string) => void;
};

/** A harness process in the sandbox. It reads lines and emits events. */
export class HarnessProcess {
  /** Resolves when the process is ready for turns. Never settles if the process ends earlier. */
  readonly session: Promise<HarnessSession>;
  readonly connection: HarnessConnection;
  readonly #deps: ProcessDeps;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #putting: Promise<void> = Promise.resolve();

  constructor(deps: ProcessDeps) {
    this.#deps = deps;
    let begun: (session: HarnessSession) => void = () => {};
    this.session = new Promise((resolve) => (begun = resolve));
    this.connection = deps.connect({
      send: (text) => void (this.#putting = this.#putting.then(() => this.#put(text))),
      emit: (event) => (event.t === "session" ? begun(event.session) : deps.onEvent(event)),
    });
    void this.#listen();
  }

  /** Closes the process's input and kills it after `STOP_GRACE_MS`. Never rejects. */
  async stop(): Promise<void> {
    const { program } = this.#deps;
    void program.end().catch(() => undefined);
    const force = setTimeout(() => void program.stop().catch(() => undefined), STOP_GRACE_MS);
    await program.ended.catch(() => undefined);
    clearTimeout(force);
  }

  /** Writes to the process. Errors are ignored: the process has ended or is about to, which `onEnd` reports. */
  #put(text: string): Promise<void> {
    return this.#deps.program.put(Buffer.from(text)).catch(() => undefined);
  }

  async #listen(): Promise<void> {
    const { program, onEnd } = this.#deps;
    try {
      for (let data = await program.take(); data; data = await program.take()) this.#receive(data);
      const { exitCode, signal, errors } = await program.ended;
      onEnd(`It has ended (${signal ?? `exit code ${exitCode}`})${errors === "" ? "." : `: ${lastLines(errors)}`}`);
    } catch (error) {
      onEnd(error instanceof Error ? error.message : "It has ended.");
    }
  }

  #receive(data: Buffer): void {
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      this.#add(data.subarray(start, end));
      const line =
        this.#bytes > LINE_BYTES_MAX ? `(a line of ${this.#bytes} bytes)` : Buffer.concat(this.#parts).toString("utf8");
      this.#parts.length = this.#bytes = 0;
      this.connection.receive(line);
      start = end + 1;
    }
    this.#add(data.subarray(start));
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > LINE_BYTES_MAX) this.#parts.length = 0;
    else if (part.length > 0) this.#parts.push(part);
  }
}

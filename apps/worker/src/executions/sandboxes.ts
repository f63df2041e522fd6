import type { Logger } from "@millwright/telemetry";
import type { ProcessRecords } from "../state/instance-directory.ts";
import type { SandboxHandle } from "../sandbox/sandbox-handle.ts";

/** The sandboxes of one attempt and the state that was last requested of them. */
export class Sandboxes {
  readonly #records: ProcessRecords;
  readonly #log: Logger;
  readonly #running = new Set<SandboxHandle>();
  #requestedState: "run" | "terminate" | "kill" = "run";

  constructor(records: ProcessRecords, log: Logger) {
    this.#records = records;
    this.#log = log;
  }

  /**
   * Registers a sandbox that was just started. If a stop was requested before, the sandbox is stopped immediately.
   */
  own(sandbox: SandboxHandle): void {
    this.#running.add(sandbox);
    this.#attempt("add", () => this.#records.add(sandbox.pid, sandbox.mark));
    void this.#forgetWhenGone(sandbox);
    this.#applyStopSignal(sandbox);
  }

  terminate(): void {
    if (this.#requestedState === "run") this.#requestedState = "terminate";
    for (const sandbox of this.#running) this.#applyStopSignal(sandbox);
  }

  kill(): void {
    this.#requestedState = "kill";
    for (const sandbox of this.#running) this.#applyStopSignal(sandbox);
  }

  /** Resolves when no sandbox remains. Running ones are killed, because they are no longer used. */
  async ended(): Promise<void> {
    this.kill();
    while (this.#running.size > 0) await Promise.all([...this.#running].map((sandbox) => sandbox.gone));
  }

  async #forgetWhenGone(sandbox: SandboxHandle): Promise<void> {
    await sandbox.gone;
    this.#running.delete(sandbox);
    this.#attempt("remove", () => this.#records.remove(sandbox.pid));
  }

  #applyStopSignal(sandbox: SandboxHandle): void {
    if (this.#requestedState === "terminate") this.#attempt("terminate", () => sandbox.terminate());
    if (this.#requestedState === "kill") this.#attempt("kill", () => sandbox.kill());
  }

  /**
   * Logs errors instead of throwing them: an exiting process may reject a signal, and the others must still receive
   * theirs.
   */
  #attempt(operation: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#log.warn({ operation, error }, "sandbox operation failed");
    }
  }
}

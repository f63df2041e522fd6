import type { Logger } from "@millwright/telemetry";
import type { ProcessRecords } from "../state/instance-directory.ts";
import type { SandboxHandle } from "../sandbox/sandbox-handle.ts";

/** The sandboxes of one attempt and the last order that they received. */
export class Sandboxes {
  readonly #records: ProcessRecords;
  readonly #log: Logger;
  readonly #running = new Set<SandboxHandle>();
  #order: "run" | "terminate" | "kill" = "run";

  constructor(records: ProcessRecords, log: Logger) {
    this.#records = records;
    this.#log = log;
  }

  /**
   * Registers a sandbox that was just started. If an order to stop was given before, the sandbox is stopped
   * immediately.
   */
  own(sandbox: SandboxHandle): void {
    this.#running.add(sandbox);
    this.#attempt("add", () => this.#records.add(sandbox.pid, sandbox.mark));
    void this.#forgetWhenGone(sandbox);
    this.#obey(sandbox);
  }

  terminate(): void {
    if (this.#order === "run") this.#order = "terminate";
    for (const sandbox of this.#running) this.#obey(sandbox);
  }

  kill(): void {
    this.#order = "kill";
    for (const sandbox of this.#running) this.#obey(sandbox);
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

  #obey(sandbox: SandboxHandle): void {
    if (this.#order === "terminate") this.#attempt("terminate", () => sandbox.terminate());
    if (this.#order === "kill") this.#attempt("kill", () => sandbox.kill());
  }

  /**
   * Logs errors instead of throwing them: an exiting process may reject a signal, and the others must still receive
   * theirs.
   */
  #attempt(operation: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#log.warn({ operation, error }, "sandbox could not be handled");
    }
  }
}

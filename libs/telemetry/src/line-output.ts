import { writeSync } from "node:fs";

const NEWLINE = 0x0a;
/** How long to wait for the reader of a full, non-blocking pipe before lines are dropped. */
const PIPE_WAIT_MS = 100;
const PIPE_POLL_MS = 5;

/**
 * Appends log lines to a file descriptor. Never throws: logging must not end the process that logs. Lines that cannot
 * be written (full disk, closed pipe) are dropped and counted; when writing works again, the count is the next line.
 */
export class LineOutput {
  readonly #open: () => number;
  #fd: number | undefined;
  #lost = 0;
  /** The output ends in the middle of a line. */
  #isCut = false;

  /** `open` returns the file descriptor; if it throws, it is called again for the next lines. */
  constructor(open: () => number) {
    this.#open = open;
  }

  /** Appends one or more whole lines. */
  write(lines: string): void {
    if (this.#lost > 0 && this.#append(lossReport(this.#lost))) this.#lost = 0;
    if (this.#lost > 0 || !this.#append(lines)) this.#lost += lines.split("\n").length - 1;
  }

  #append(text: string): boolean {
    const bytes = Buffer.from(this.#isCut ? `\n${text}` : text);
    let written = 0;
    try {
      this.#fd ??= this.#open();
      const deadlineMs = performance.now() + (this.#lost > 0 ? 0 : PIPE_WAIT_MS);
      while (written < bytes.length) written += this.#writeSome(this.#fd, bytes.subarray(written), deadlineMs);
      this.#isCut = false;
      return true;
    } catch {
      if (written > 0) this.#isCut = bytes[written - 1] !== NEWLINE;
      return false;
    }
  }

  #writeSome(fd: number, bytes: Uint8Array, deadlineMs: number): number {
    for (;;) {
      try {
        return writeSync(fd, bytes);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || performance.now() >= deadlineMs) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_POLL_MS);
      }
    }
  }
}

const lossReport = (count: number): string =>
  `${JSON.stringify({ level: "warn", time: new Date().toISOString(), message: "log lines could not be written and are lost", count })}\n`;

/**
 * Lets the process survive failed writes to its standard streams (full disk, closed pipe): without a listener such an
 * error is an uncaught exception.
 */
export function ignoreStandardStreamErrors(streams: Pick<NodeJS.Process, "stdout" | "stderr">): void {
  for (const stream of [streams.stdout, streams.stderr]) stream.on("error", () => {});
}

import { openSync } from "node:fs";
import { LineOutput } from "@millwright/telemetry";

/** Milliseconds for which lines are collected before a write. A SIGKILL loses at most the lines of this period. */
const BATCH_MS = 50;

/**
 * Returns a log file whose `write` never throws. Lines are batched, because one write call per line costs more CPU time
 * than formatting the line.
 */
export function logFile(path: string): { write(line: string): void } {
  const output = new LineOutput(() => openSync(path, "a", 0o600));
  let lines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length > 0) output.write(lines.join(""));
    lines = [];
  };
  process.on("exit", flush);
  return {
    write(line) {
      lines.push(line);
      timer ??= setTimeout(flush, BATCH_MS).unref();
    },
  };
}

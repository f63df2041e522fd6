import { openSync } from "node:fs";
import { LineOutput } from "@millwright/telemetry";

/** Lines of this period are written together; a SIGKILL loses no more than these. */
const BATCH_MS = 50;

/** Returns a file to log to. Writing never throws. Lines are batched: writing each by itself costs a busy platform more than making it. */
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

import { openSync, writeSync } from "node:fs";

/** Lines of this long are written together; a SIGKILL loses no more than these. */
const GATHERED_MS = 50;

/** A file to log to. Writing each line by itself costs a busy platform more than making it. */
export function logFile(path: string): { write(line: string): void } {
  const file = openSync(path, "a", 0o600);
  let lines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length > 0) writeSync(file, lines.join(""));
    lines = [];
  };
  process.on("exit", flush);
  return {
    write(line) {
      lines.push(line);
      timer ??= setTimeout(flush, GATHERED_MS).unref();
    },
  };
}

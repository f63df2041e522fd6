import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from "node:fs";
import type { Logger } from "@millwright/telemetry";

const CHECK_EVERY_MS = 60_000;
/**
 * Size in bytes above which a file is rotated: `x.log` becomes `x.log.1`, and so on. The last generation is deleted.
 */
const BYTES_MAX = 10_000_000;
const GENERATIONS = 3;

/**
 * Rotates log files at once and then once per minute, so that each uses at most about 40 MB. Files are copied and
 * truncated, because other processes (workers, PostgreSQL) append to them through their own descriptors. Lines that are
 * written between the two steps are lost. Returns a function that stops the rotation.
 */
export function rotateLogs(paths: readonly string[], log: Logger): () => void {
  const rotateAll = (): void => {
    for (const path of paths) {
      try {
        rotateLog(path, BYTES_MAX);
      } catch (error) {
        log.warn({ operation: "rotateLog", path, error }, "a log file could not be rotated");
      }
    }
  };
  rotateAll();
  const timer = setInterval(rotateAll, CHECK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/**
 * Rotates one regular file if it is larger than `bytesMax`. Errors: those of the file system; in this case the log is
 * unchanged.
 */
export function rotateLog(path: string, bytesMax: number): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file?.isFile() || file.size <= bytesMax) return;
  const draft = `${path}.0`;
  try {
    copyFileSync(path, draft); // copied first, so that a full disk does not cost an older generation
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  for (let generation = GENERATIONS - 1; generation >= 1; generation--) {
    const older = `${path}.${generation}`;
    if (statSync(older, { throwIfNoEntry: false })) renameSync(older, `${path}.${generation + 1}`);
  }
  renameSync(draft, `${path}.1`);
  truncateSync(path);
}

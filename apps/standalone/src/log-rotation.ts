import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from "node:fs";
import type { Logger } from "@millwright/telemetry";

const CHECK_EVERY_MS = 60_000;
/** A file larger than this is rotated: `x.log` becomes `x.log.1`, and so on up to the last generation, which is removed. */
const BYTES_MAX = 10_000_000;
const GENERATIONS = 3;

/**
 * Rotates log files now and then once per minute, so that each takes at most about 40 MB. Files are copied and truncated, because other
 * processes (workers, PostgreSQL) append to them through descriptors of their own; lines written between the two steps are lost.
 * Returns a function that stops it.
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

/** Rotates one regular file if it is larger than `bytesMax`. Errors: those of the file system; the log itself is unchanged then. */
export function rotateLog(path: string, bytesMax: number): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file?.isFile() || file.size <= bytesMax) return;
  const draft = `${path}.0`;
  try {
    copyFileSync(path, draft); // first: a full disk must not cost an older generation
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

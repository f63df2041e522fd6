import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { deletedFiles } from "./processes.ts";

const MEASURE_TIMEOUT_MS = 120_000;
const MEASURE_AGAIN_MS = 2_000;
/** The minimum ratio of elapsed time to measuring time: 50 normally, 10 if a limit may be exceeded. */
const IDLE_FACTOR = 50;
const BUSY_FACTOR = 10;

/** Disk usage of a sandbox. Directories and links count as files. */
export type Usage = { readonly bytes: number; readonly files: number };

const plus = (a: Usage, b: Usage): Usage => ({ bytes: a.bytes + b.bytes, files: a.files + b.files });
const exceeds = (usage: Usage, limits: Usage): boolean => usage.bytes > limits.bytes || usage.files > limits.files;

/**
 * Measures the disk usage of a sandbox. A measurement walks the whole directory tree. It is therefore made only if the
 * file system's free space or free inodes have decreased so much since the last one that a limit may be exceeded, and
 * periodically.
 */
export class DiskUsage {
  readonly #directories: readonly string[];
  readonly #limits: Usage;
  readonly #members: () => readonly number[];
  #measured = { usage: { bytes: 0, files: 0 }, free: { bytes: 0, files: 0 }, atMs: -Infinity, tookMs: 0 };
  #freeMost: Usage = { bytes: 0, files: 0 };

  /** `members`: the processes whose open files count even if they were deleted from every directory. */
  constructor(directories: readonly string[], limits: Usage, members: () => readonly number[]) {
    this.#directories = directories;
    this.#limits = limits;
    this.#members = members;
  }

  /** Returns the last measured usage, or measures it if it may exceed a limit. */
  async usage(): Promise<Usage> {
    const [first] = this.#directories;
    if (first === undefined) return { bytes: 0, files: 0 };
    const { bavail, bsize, ffree } = await statfs(first);
    const free = { bytes: bavail * bsize, files: ffree };
    this.#freeMost = {
      bytes: Math.max(this.#freeMost.bytes, free.bytes),
      files: Math.max(this.#freeMost.files, free.files),
    };
    const { usage, free: before, atMs, tookMs } = this.#measured;
    const sinceMs = performance.now() - atMs;
    const mayExceed = exceeds(
      plus(usage, { bytes: Math.max(0, before.bytes - free.bytes), files: Math.max(0, before.files - free.files) }),
      this.#limits,
    );
    if (sinceMs < (mayExceed ? tookMs * BUSY_FACTOR : Math.max(MEASURE_AGAIN_MS, tookMs * IDLE_FACTOR))) return usage;
    const startedMs = performance.now();
    const { isComplete, ...seen } = await usageOfDirectories(this.#directories);
    // If the usage cannot be measured completely, because the run hides files, the run is charged with all space that
    // the file system has lost compared with the most that was free.
    const deleted = deletedFiles(this.#members());
    const found =
      isComplete && deleted.isComplete
        ? plus(seen, deleted)
        : {
            bytes: Math.max(seen.bytes, this.#freeMost.bytes - free.bytes),
            files: Math.max(seen.files, this.#freeMost.files - free.files),
          };
    this.#measured = { usage: found, free, atMs: performance.now(), tookMs: performance.now() - startedMs };
    return found;
  }
}

/**
 * Returns the bytes and files of directories on disk. Links are not followed and other file systems are excluded.
 * `isComplete` is false if a directory could not be read. `du` walks relative to directory handles and opens no file, so
 * it is safe while a sandbox writes there.
 */
export async function usageOfDirectories(
  directories: readonly string[],
): Promise<Usage & { readonly isComplete: boolean }> {
  const [kilobytes, inodes] = await Promise.all([
    du("-skx", directories),
    process.platform === "linux" ? du("-sx", ["--inodes", ...directories]) : { sum: 0, isComplete: true },
  ]);
  return { bytes: kilobytes.sum * 1024, files: inodes.sum, isComplete: kilobytes.isComplete && inodes.isComplete };
}

function du(flags: string, more: readonly string[]): Promise<{ readonly sum: number; readonly isComplete: boolean }> {
  return new Promise((resolve) => {
    const options = {
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" },
      timeout: MEASURE_TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    };
    execFile("du", [flags, ...more], options, (error, stdout, stderr) => {
      const lines = stdout.split("\n").filter(Boolean);
      const isCut = error !== null && lines.length === 0; // du timed out or does not support the option
      resolve({
        sum: lines.reduce((sum, line) => sum + Number.parseInt(line, 10), 0),
        isComplete: !isCut && !stderr.includes("ermission denied"),
      });
    });
  });
}

import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { deletedBytes } from "./processes.ts";

const MEASURE_TIMEOUT_MS = 120_000;
const MEASURE_AGAIN_MS = 2_000;
/** Measuring takes at most one part in so many of the time; one in ten where much is being written. */
const IDLE_FACTOR = 50;
const BUSY_FACTOR = 10;

/**
 * How much a sandbox has on disk. A measurement walks through everything, so one is made only when the file system's free space has shrunk by
 * so much since the last one that the limit may be passed, and now and then.
 */
export class DiskUsage {
  readonly #directories: readonly string[];
  readonly #limitBytes: number;
  readonly #members: () => readonly number[];
  #measured = { bytes: 0, freeBytes: 0, atMs: -Infinity, tookMs: 0 };
  #freeBytesMost = 0;

  /** `members`: processes whose open files count even when they are in no directory any more. */
  constructor(directories: readonly string[], limitBytes: number, members: () => readonly number[]) {
    this.#directories = directories;
    this.#limitBytes = limitBytes;
    this.#members = members;
  }

  /** Bytes in use as last measured, or measured now if that could be too many. */
  async bytes(): Promise<number> {
    const [first] = this.#directories;
    if (first === undefined) return 0;
    const { bavail, bsize } = await statfs(first);
    const freeBytes = bavail * bsize;
    this.#freeBytesMost = Math.max(this.#freeBytesMost, freeBytes);
    const { bytes, freeBytes: before, atMs, tookMs } = this.#measured;
    const sinceMs = performance.now() - atMs;
    const mayBeOver = bytes + Math.max(0, before - freeBytes) > this.#limitBytes;
    if (sinceMs < (mayBeOver ? tookMs * BUSY_FACTOR : Math.max(MEASURE_AGAIN_MS, tookMs * IDLE_FACTOR))) return bytes;
    const startedMs = performance.now();
    const seen = await bytesIn(this.#directories);
    // Who hides files answers for all that was written meanwhile.
    const found = seen.isWhole ? seen.bytes + deletedBytes(this.#members()) : Math.max(seen.bytes, this.#freeBytesMost - freeBytes);
    this.#measured = { bytes: found, freeBytes, atMs: performance.now(), tookMs: performance.now() - startedMs };
    return found;
  }
}

/** Bytes that directories take on disk, links not followed, other file systems left out; not whole when some of them could not be read. */
export function bytesIn(directories: readonly string[]): Promise<{ readonly bytes: number; readonly isWhole: boolean }> {
  return new Promise((resolve) => {
    const options = { env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" }, timeout: MEASURE_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile("du", ["-skx", "--", ...directories], options, (_error, stdout, stderr) => {
      const lines = stdout.split("\n").filter(Boolean);
      resolve({ bytes: lines.reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0), isWhole: !stderr.includes("ermission denied") });
    });
  });
}

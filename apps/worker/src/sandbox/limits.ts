import { availableParallelism, totalmem } from "node:os";

/** The limits of one sandbox. */
export type Limits = {
  /** The memory of all its processes together, including /tmp and /dev/shm. */
  readonly memoryBytes: number;
  /** The number of processes, including threads. */
  readonly processes: number;
  /** 0: all processors of the machine. */
  readonly cpus: number;
  /** The maximum size of one file. */
  readonly fileBytes: number;
  /** The maximum size of workspace and home together. It is checked periodically, so it can be exceeded briefly. */
  readonly diskBytes: number;
  /**
   * The maximum number of files and directories in workspace and home together, because each uses an inode of the
   * worker's disk.
   */
  readonly files: number;
  /** The maximum size of /tmp, which is in memory. */
  readonly temporaryBytes: number;
};

/** The operator's limits: the defaults of a run, and the maximum that a run may request. */
export type LimitSettings = Limits & { readonly memoryBytesMax: number };

const GIB = 1024 ** 3;

export const DEFAULT_LIMITS: LimitSettings = {
  memoryBytes: 4 * GIB,
  memoryBytesMax: totalmem(),
  processes: 4_096,
  cpus: 0,
  fileBytes: 4 * GIB,
  diskBytes: 10 * GIB,
  files: 1_000_000,
  temporaryBytes: GIB,
};

/**
 * Returns the limits of one run: the operator's limits with the shape of its runner, as far as the machine and the
 * operator allow.
 */
export function limitsFor(
  { memoryBytesMax, ...limits }: LimitSettings,
  shape?: { readonly vcpus: number; readonly memoryGb: number },
): Limits {
  const memoryBytes = Math.min(shape && shape.memoryGb > 0 ? shape.memoryGb * GIB : limits.memoryBytes, memoryBytesMax);
  const wanted = shape && shape.vcpus > 0 ? Math.min(shape.vcpus, limits.cpus || shape.vcpus) : limits.cpus;
  return {
    ...limits,
    memoryBytes,
    temporaryBytes: Math.min(limits.temporaryBytes, memoryBytes),
    cpus: wanted >= availableParallelism() ? 0 : wanted,
  };
}

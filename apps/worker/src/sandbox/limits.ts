import { availableParallelism, totalmem } from "node:os";

/** The limits of one sandbox. */
export type Limits = {
  /** All its processes together, /tmp and /dev/shm included. */
  readonly memoryBytes: number;
  /** Threads count too. */
  readonly processes: number;
  /** 0 = as many as the machine has. */
  readonly cpus: number;
  /** One file. */
  readonly fileBytes: number;
  /** Workspace and home together. Checked periodically, so it can be exceeded for a moment. */
  readonly diskBytes: number;
  /** Files and directories in workspace and home together: each takes an inode of the worker's disk. */
  readonly files: number;
  /** /tmp; it lies in memory. */
  readonly temporaryBytes: number;
};

/** The operator's limits: defaults of a run, and the maximum that a run may request. */
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
 * Returns the limits of one run: those of the operator, with the shape of its runner (factory-files §8) as far as the
 * machine and the operator permit.
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

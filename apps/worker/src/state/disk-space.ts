import type { Clock } from "@millwright/clock";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { trimCaches } from "../git/repository-caches.ts";
import type { InstanceDirectory } from "./instance-directory.ts";

const TRIM_EVERY_MS = 10 * 60_000;

/**
 * Checks for disk space for another workspace. Cached copies of repositories are trimmed to their limit, and removed
 * first if space is short.
 */
export class DiskSpace {
  readonly #directory: Pick<InstanceDirectory, "hasFreeDisk" | "cacheDir">;
  readonly #cacheBytesMax: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  #isAvailable = true;
  #trimmedMs = -Infinity;

  constructor(
    directory: Pick<InstanceDirectory, "hasFreeDisk" | "cacheDir">,
    cacheBytesMax: number,
    clock: Clock,
    log: Logger,
  ) {
    this.#directory = directory;
    this.#cacheBytesMax = cacheBytesMax;
    this.#clock = clock;
    this.#log = log;
  }

  /** The last result. A worker without space accepts no work. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  async hasFreeDisk(): Promise<boolean> {
    if (this.#clock.monotonicMs() - this.#trimmedMs > TRIM_EVERY_MS) await this.#trim(this.#cacheBytesMax);
    this.#isAvailable = await this.#directory.hasFreeDisk();
    if (!this.#isAvailable) {
      await this.#trim(0);
      this.#isAvailable = await this.#directory.hasFreeDisk();
    }
    return this.#isAvailable;
  }

  async #trim(bytesMax: number): Promise<void> {
    this.#trimmedMs = this.#clock.monotonicMs();
    await bestEffort("trim the copies of repositories", this.#log, () =>
      trimCaches(this.#directory.cacheDir, bytesMax),
    );
  }
}

import type { Clock } from "@millwright/clock";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { trimCaches } from "../git/repository-caches.ts";
import type { InstanceDirectory } from "./instance-directory.ts";

const TRIM_EVERY_MS = 10 * 60_000;

/** Whether there is disk for another workspace. Copies of repositories are kept within their size, and go first when there is none. */
export class Room {
  readonly #directory: Pick<InstanceDirectory, "hasRoom" | "cacheDir">;
  readonly #cacheBytesMax: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  #isThere = true;
  #trimmedMs = -Infinity;

  constructor(
    directory: Pick<InstanceDirectory, "hasRoom" | "cacheDir">,
    cacheBytesMax: number,
    clock: Clock,
    log: Logger,
  ) {
    this.#directory = directory;
    this.#cacheBytesMax = cacheBytesMax;
    this.#clock = clock;
    this.#log = log;
  }

  /** As last seen. A worker without room says that it takes nothing. */
  get isThere(): boolean {
    return this.#isThere;
  }

  async hasRoom(): Promise<boolean> {
    if (this.#clock.monotonicMs() - this.#trimmedMs > TRIM_EVERY_MS) await this.#trim(this.#cacheBytesMax);
    this.#isThere = await this.#directory.hasRoom();
    if (!this.#isThere) {
      await this.#trim(0);
      this.#isThere = await this.#directory.hasRoom();
    }
    return this.#isThere;
  }

  async #trim(bytesMax: number): Promise<void> {
    this.#trimmedMs = this.#clock.monotonicMs();
    await bestEffort("trim the copies of repositories", this.#log, () =>
      trimCaches(this.#directory.cacheDir, bytesMax),
    );
  }
}

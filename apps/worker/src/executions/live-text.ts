import { outsideScopes } from "@millwright/telemetry";
import type { LeaseClock } from "../leases/lease-clock.ts";
import type { WorkerClient } from "../protocol/client.ts";
import type { LeaseRef } from "../protocol/offer.ts";
import type { Timings } from "../protocol/timings.ts";
import type { StreamMasker } from "../sandbox/init/mask.ts";
import type { Timers } from "../time/timers.ts";

const PAUSE_MS = 250;
/** The maximum number of characters per message; the platform accepts at most twice as many. */
const TEXT_MAX = 16 * 1024;

export type TextDelta = { readonly stepId: string; readonly offset: number; readonly text: string };

export type LiveTextDeps = {
  readonly timers: Timers;
  /** Sends a delta. Must not throw. */
  readonly send: (delta: TextDelta) => Promise<void>;
  /** Returns a masker that buffers what may be the beginning of a secret. */
  readonly masker: () => StreamMasker;
};

/**
 * Publishes a model's text while it is generated: masked, batched for a quarter of a second, with one request at a
 * time. Delivery is not guaranteed; the step's event contains the complete text.
 */
export class LiveText {
  readonly #deps: LiveTextDeps;
  #step:
    | {
        readonly id: string;
        readonly masker: StreamMasker;
        readonly decoder: InstanceType<typeof TextDecoder>;
        offset: number;
        waiting: string;
      }
    | undefined;
  #isBusy = false;

  constructor(deps: LiveTextDeps) {
    this.#deps = deps;
  }

  /** Appends `delta` to the text of a step. Unsent text of another step is dropped. */
  publish(stepId: string, delta: string): void {
    if (this.#step?.id !== stepId)
      this.#step = { id: stepId, masker: this.#deps.masker(), decoder: new TextDecoder(), offset: 0, waiting: "" };
    const { masker, decoder } = this.#step;
    this.#step.waiting += decoder.decode(masker.push(Buffer.from(delta.replaceAll("\0", "\uFFFD"))), { stream: true });
    this.#scheduleSend();
  }

  /** Stops publishing. */
  end(): void {
    this.#step = undefined;
  }

  #scheduleSend(): void {
    if (this.#isBusy || !this.#step || this.#step.waiting === "") return;
    this.#isBusy = true;
    this.#deps.timers.after(PAUSE_MS, () => void this.#send());
  }

  async #send(): Promise<void> {
    const step = this.#step;
    if (step && step.waiting !== "") {
      const text = beginningOf(step.waiting);
      const { id, offset } = step;
      step.waiting = step.waiting.slice(text.length);
      step.offset += text.length;
      await this.#deps.send({ stepId: id, offset, text });
    }
    this.#isBusy = false;
    this.#scheduleSend();
  }
}

/** Returns the beginning of a text without splitting surrogate pairs. */
const beginningOf = (text: string): string =>
  text.length > TEXT_MAX && /[\uD800-\uDBFF]/.test(text.charAt(TEXT_MAX - 1))
    ? text.slice(0, TEXT_MAX - 1)
    : text.slice(0, TEXT_MAX);

export type TextDeltaSenderDeps = {
  readonly client: Pick<WorkerClient, "publishTextDelta">;
  readonly timings: () => Timings;
  readonly lease: LeaseRef;
  readonly gate: Pick<LeaseClock, "isOpen">;
  readonly signal: AbortSignal;
};

/**
 * Returns a function that sends a text delta to the platform while the outbound gate is open. Best effort without a
 * warning, because older platforms do not support it and another delta follows.
 */
export const textDeltaSender =
  ({ client, timings, lease: { executionId, attempt }, gate, signal }: TextDeltaSenderDeps) =>
  async (delta: TextDelta): Promise<void> => {
    if (!gate.isOpen()) return;
    await outsideScopes(() =>
      client.publishTextDelta({ executionId, attempt, ...delta }, { timeoutMs: timings().callTimeoutMs, signal }),
    ).catch(() => undefined);
  };

import type { StreamMasker } from "../sandbox/init/mask.ts";
import type { Timers } from "../time.ts";

const PAUSE_MS = 250;
/** As much as is said at once; the platform takes no more than twice that. */
const TEXT_MAX = 16 * 1024;

export type TextDelta = { readonly stepId: string; readonly offset: number; readonly text: string };

export type LiveTextDeps = {
  readonly timers: Timers;
  /** Errors are its own affair. */
  readonly send: (delta: TextDelta) => Promise<void>;
  /** Holds back what may be the beginning of a secret. */
  readonly masker: () => StreamMasker;
};

/**
 * What a model says while it says it, for those who watch: masked, gathered for a quarter of a second, one piece under way at a time. Nothing depends on it; what
 * cannot be told is left out, and the step's event has the whole.
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

  /** `delta` comes next in the text of a step; another step's text is given up. */
  publish(stepId: string, delta: string): void {
    if (this.#step?.id !== stepId)
      this.#step = { id: stepId, masker: this.#deps.masker(), decoder: new TextDecoder(), offset: 0, waiting: "" };
    const { masker, decoder } = this.#step;
    this.#step.waiting += decoder.decode(masker.push(Buffer.from(delta.replaceAll("\0", "\uFFFD"))), { stream: true });
    this.#scheduleSend();
  }

  /** Nothing more is told. */
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

/** Characters are not cut in two. */
const beginningOf = (text: string): string =>
  text.length > TEXT_MAX && /[\uD800-\uDBFF]/.test(text.charAt(TEXT_MAX - 1))
    ? text.slice(0, TEXT_MAX - 1)
    : text.slice(0, TEXT_MAX);

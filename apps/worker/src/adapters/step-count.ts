import type { RunFailure } from "../model/model-provider.ts";

const STEP_LIMIT = 200;
/** The maximum ratio of answered calls that are not steps, such as for titles, to steps. */
const SIDE_CALLS_PER_STEP = 4;

/**
 * Applies the run's step limit to the model calls of an agent program. A step is an answered call that offers tools to
 * the model. Refused calls and calls for titles and summaries do not count.
 */
export class StepCount {
  readonly #limit: number;
  #steps = 0;
  #sideCalls = 0;

  /** @param limit the maximum number of steps; 0: the platform's default */
  constructor(limit: number) {
    this.#limit = limit || STEP_LIMIT;
  }

  /** Returns why no further call of this kind may be made; undefined while it may. */
  exceeded(isStep: boolean): RunFailure | undefined {
    if (isStep ? this.#steps < this.#limit : this.#sideCalls < this.#limit * SIDE_CALLS_PER_STEP) return undefined;
    const message = isStep
      ? `The agent took more than ${this.#limit} steps.`
      : `The agent made more than ${this.#limit * SIDE_CALLS_PER_STEP} model calls without tools.`;
    return { code: "budget_exceeded", message, retryable: false, reason: "step_limit" };
  }

  /** Counts an answered call. */
  add(isStep: boolean): void {
    if (isStep) this.#steps += 1;
    else this.#sideCalls += 1;
  }
}

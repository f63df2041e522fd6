import type { RunFailure } from "../model/model-provider.ts";

const STEP_LIMIT = 200;
/** Answered calls that are no steps, such as for titles, may be this many times as many as steps. */
const SIDE_CALLS_PER_STEP = 4;

/**
 * The model calls of an agent program against the run's step limit. A step is an answered call that offers the model tools: refused calls and
 * those for titles and summaries are none.
 */
export class StepCount {
  readonly #limit: number;
  #steps = 0;
  #sideCalls = 0;

  /** @param limit of steps; 0 = the platform's default */
  constructor(limit: number) {
    this.#limit = limit || STEP_LIMIT;
  }

  /** Why no further call of this kind may be made; undefined while it may. */
  exceeded(isStep: boolean): RunFailure | undefined {
    if (isStep ? this.#steps < this.#limit : this.#sideCalls < this.#limit * SIDE_CALLS_PER_STEP) return undefined;
    const message = isStep
      ? `The agent took more than ${this.#limit} steps.`
      : `The agent made more than ${this.#limit * SIDE_CALLS_PER_STEP} model calls without tools.`;
    return { code: "budget_exceeded", message, retryable: false, reason: "step_limit" };
  }

  /** A call was answered. */
  add(isStep: boolean): void {
    if (isStep) this.#steps += 1;
    else this.#sideCalls += 1;
  }
}

import type { TokenCounts } from "../context/platform-client.ts";
import type { ConversationEvent, RunFailure } from "../model/model-provider.ts";

const RECORDED = ["input_tokens", "output_tokens", "input_cache_read_tokens", "input_cache_write_tokens"];

/** The token limit of a run's model calls, over all its executions. */
export class TokenBudget {
  readonly #limit: number;
  #used: number;

  /** @param limit the limit in tokens of every kind; 0: none */
  constructor(limit: number, history: readonly ConversationEvent[]) {
    this.#limit = limit;
    const recorded = history.filter(({ kind }) => kind === "usage_recorded");
    this.#used = sum(recorded.flatMap(({ payload }) => RECORDED.map((name) => payload[name])));
  }

  spend(usage: TokenCounts): void {
    const { costMicros: _cost, ...tokens } = usage;
    this.#used += sum(Object.values(tokens));
  }

  /** Returns why the run must end before its next call; undefined while the limit is not reached. */
  exceeded(): RunFailure | undefined {
    if (this.#limit === 0 || this.#used < this.#limit) return undefined;
    return {
      code: "budget_exceeded",
      message: `The run has used ${this.#used} of ${this.#limit} tokens.`,
      retryable: false,
      reason: "token_limit",
    };
  }
}

const sum = (counts: readonly unknown[]): number =>
  counts.reduce<number>((total, count) => total + (typeof count === "number" ? count : 0), 0);

import type { Uid } from "@millwright/ids";
import type { Rule } from "./rule.ts";
import type { JsonObject, Label, ScorerUid } from "./scorer.ts";

export type AttemptUid = Uid<"attempt">;
export type AttemptState = "pending" | "judging" | "scored" | "failed";
export type TriggerSource = "automatic" | "manual" | "benchmark";

/**
 * Configuration of an attempt's judge, captured when the attempt started. Later updates of the scorer do not change it.
 */
export type AttemptConfig = {
  readonly scorer_version: number;
  readonly labels: readonly Label[];
  readonly threshold: number;
  readonly scoring_prompt: string;
  readonly model_id: string;
  readonly rule: Rule | null;
  readonly agent_config: JsonObject | null;
};

/** One evaluation of a run by a scorer. */
export type Attempt = {
  readonly uid: AttemptUid;
  readonly scorerUid: ScorerUid;
  readonly runUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** The agent that executed the run. */
  readonly agentUid: string | null;
  readonly conversationUid: string | null;
  /** Title of the run. */
  readonly title: string;
  readonly trialUid: string | null;
  readonly triggerSource: TriggerSource;
  /** The principal on whose behalf the judge run is created. */
  readonly requester: { readonly type: string; readonly uid: string };
  readonly state: AttemptState;
  readonly config: AttemptConfig;
  /** Version of the run that is evaluated. */
  readonly runVersion: number;
  readonly judgeRunUid: string | null;
  readonly attemptedAt: Date;
};

/** The decision of a judge, or the reason why there is none. */
export type Verdict =
  | { readonly kind: "scored"; readonly label: Label; readonly reason?: string }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** Maximum size of a stored reason, in bytes. Longer reasons are truncated. */
export const REASON_BYTES_MAX = 8_192;

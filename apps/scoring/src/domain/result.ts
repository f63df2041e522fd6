import type { TriggerSource } from "./attempt.ts";
import type { JsonObject } from "./scorer.ts";

/** The current attempt of a pair of scorer and run. */
export type Result = {
  readonly attemptUid: string;
  readonly runUid: string;
  readonly attemptedAt: Date;
  /** `in_flight`: the pair has no score, and a judge is evaluating it. */
  readonly status: "scored" | "failed" | "in_flight";
  /** Whether a judge is evaluating the pair. An existing score remains until the judge replaces it. */
  readonly isInFlight: boolean;
  readonly triggerSource: TriggerSource;
  readonly classification: string | null;
  readonly score: number | null;
  readonly scoredAt: Date | null;
  readonly reason: string | null;
  readonly reasonStatus: "available" | "absent" | "unavailable";
  readonly conversationUid: string | null;
  readonly title: string;
  readonly judgeRunUid: string | null;
  readonly judgeTimeMs: number | null;
  readonly judgeUsage: JsonObject | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
};

/** A result of a run, with the scorer that it belongs to. */
export type RunScore = Result & { readonly scorerId: number; readonly scorerUid: string; readonly scorerName: string };

/** Position of the last result of a page. */
export type ResultPosition = { readonly attemptedAt: Date; readonly attemptUid: string };

import type { Owner } from "./run.ts";

/** Whose run an execution belongs to, as far as those who act for it need to know. None of it ever changes. */
export type RunRef = {
  readonly runUid: string;
  readonly rootRunUid: string;
  readonly parentRunUid?: string;
  readonly owner: Owner;
  readonly agentUid?: string;
  readonly factoryUid?: string;
  readonly creatorUid: string;
  readonly conversationUid: string;
};

/** What a run token says. */
export type RunTokenClaims = {
  readonly run: RunRef;
  readonly executionId: number;
  readonly attempt: number;
  /** Never later than the lease. */
  readonly expiresAt: Date;
};

/** Before the token proper, so that leaked ones are recognised. */
export const RUN_TOKEN_PREFIX = "mwr_";

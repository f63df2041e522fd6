import type { Owner } from "./run.ts";

/** The run of an execution, with the identities that requests of the execution act for. All members are immutable. */
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

/** The claims of a run token. */
export type RunTokenClaims = {
  readonly run: RunRef;
  readonly executionId: number;
  readonly attempt: number;
  /** Never later than the expiry of the lease. */
  readonly expiresAt: Date;
};

/** Prefix of run tokens, by which leaked tokens are recognised. */
export const RUN_TOKEN_PREFIX = "mwr_";

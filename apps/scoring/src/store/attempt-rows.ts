import { as } from "@millwright/ids";
import type { Attempt, AttemptConfig, AttemptState, AttemptUid, TriggerSource } from "../domain/attempt.ts";
import type { ScorerUid } from "../domain/scorer.ts";

export type AttemptRow = {
  uid: string;
  scorer_uid: string;
  run_uid: string;
  factory_uid: string;
  team_uid: string;
  agent_uid: string | null;
  conversation_uid: string | null;
  title: string;
  trial_uid: string | null;
  trigger_source: TriggerSource;
  requester_type: string;
  requester_uid: string;
  state: AttemptState;
  config: AttemptConfig;
  run_version: number;
  judge_run_uid: string | null;
  attempted_at: Date;
  classification: string | null;
  reason: string | null;
  failure_code: string | null;
  failure_message: string | null;
};

/** Columns of `AttemptRow`, for the table alias `a`. */
export const ATTEMPT_COLUMNS = `
  a.uid, a.scorer_uid, a.run_uid, a.factory_uid, a.team_uid, a.agent_uid, a.conversation_uid, a.title, a.trial_uid, a.trigger_source,
  a.requester_type, a.requester_uid, a.state, a.config, a.run_version, a.judge_run_uid, a.attempted_at, a.classification, a.reason, a.failure_code, a.failure_message`;

/** An attempt with its verdict, if it has one. */
export type JudgedAttempt = Attempt & {
  readonly classification: string | null;
  readonly reason: string | null;
  readonly failureCode: string | null;
  readonly failureMessage: string | null;
};

export const toAttempt = (row: AttemptRow): JudgedAttempt => ({
  uid: as<AttemptUid>(row.uid),
  scorerUid: as<ScorerUid>(row.scorer_uid),
  runUid: row.run_uid,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  agentUid: row.agent_uid,
  conversationUid: row.conversation_uid,
  title: row.title,
  trialUid: row.trial_uid,
  triggerSource: row.trigger_source,
  requester: { type: row.requester_type, uid: row.requester_uid },
  state: row.state,
  config: row.config,
  runVersion: row.run_version,
  judgeRunUid: row.judge_run_uid,
  attemptedAt: row.attempted_at,
  classification: row.classification,
  reason: row.reason,
  failureCode: row.failure_code,
  failureMessage: row.failure_message,
});

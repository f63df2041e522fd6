import type { NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { Attempt } from "../domain/attempt.ts";
import type { Label } from "../domain/scorer.ts";

/** Returns the event of a recorded verdict. Payload: docs/events.md; it never contains the reason. */
export const scoreRecorded = (attempt: Attempt, label: Label): NewEvent => ({
  ...origin(attempt),
  type: "millwright.score.recorded.v1",
  entity: "score",
  payload: { ...subject(attempt), classification: label.value, score: label.score },
});

/** Returns the event of an attempt that ended without a score. */
export const attemptFailed = (attempt: Attempt, code: string): NewEvent => ({
  ...origin(attempt),
  type: "millwright.scoring_attempt.failed.v1",
  entity: "scoring_attempt",
  payload: { ...subject(attempt), failure_code: code },
});

const origin = ({ uid, teamUid, requester }: Attempt) => ({
  entityUid: uid,
  entityVersion: 1,
  teamUid,
  actor: { ...requester },
  requestId: newUid(),
  cause: uid,
});

const subject = ({ uid, factoryUid, scorerUid, runUid }: Attempt) => ({
  factory_uid: factoryUid,
  scorer_uid: scorerUid,
  run_uid: runUid,
  attempt_uid: uid,
});

import { invalidArgument } from "@millwright/errors";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import type { LiveTexts } from "../live-texts.ts";

export type PublishTextDeltaDeps = {
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
  /** Returns undefined if the attempt has lost its lease, or is being stopped. */
  findLiveLease(lease: LeaseRef): Promise<unknown>;
  readonly liveTexts: Pick<LiveTexts, "publish">;
};

export type TextPiece = LeaseRef & { readonly stepId: string; readonly offset: number; readonly text: string };

/** Maximum length of one text, in characters. */
const TEXT_MAX = 32 * 1024;
const STEP_ID_MAX = 200;

/**
 * Publishes the text that a model is generating in an execution to the watchers of its run. The text is dropped if this
 * session does not own the lease of the attempt.
 *
 * Errors: text_too_long (invalid_argument).
 */
export async function publishTextDelta(
  deps: PublishTextDeltaDeps,
  session: WorkerSession,
  piece: TextPiece,
): Promise<void> {
  if (piece.text.length > TEXT_MAX || piece.stepId.length > STEP_ID_MAX)
    throw invalidArgument("text_too_long", `text must have at most ${TEXT_MAX} characters.`);
  const { executionId, attempt, stepId, offset, text } = piece;
  const [runUid, lease] = await Promise.all([deps.findRunOfLease(session, piece), deps.findLiveLease(piece)]);
  if (runUid !== undefined && lease !== undefined)
    deps.liveTexts.publish({ runUid, executionId, attempt, stepId, offset, text });
}

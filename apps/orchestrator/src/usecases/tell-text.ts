import { invalidArgument } from "@millwright/errors";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import type { LiveTexts } from "../live-texts.ts";

export type TellTextDeps = {
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
  /** Undefined: the attempt does not hold its execution, or was told to stop. */
  findLiveLease(lease: LeaseRef): Promise<unknown>;
  readonly live: Pick<LiveTexts, "tell">;
};

export type TextPiece = LeaseRef & { readonly stepId: string; readonly offset: number; readonly text: string };

/** As much as a worker may say at once. */
const TEXT_MAX = 32 * 1024;
const STEP_ID_MAX = 200;

/**
 * What a model is just saying in an execution that this session holds, for those who watch; of any other attempt it is passed over.
 *
 * Errors: text_too_long (invalid_argument).
 */
export async function tellText(deps: TellTextDeps, session: WorkerSession, piece: TextPiece): Promise<void> {
  if (piece.text.length > TEXT_MAX || piece.stepId.length > STEP_ID_MAX)
    throw invalidArgument("text_too_long", `At most ${TEXT_MAX} characters are told at once.`);
  const { executionId, attempt, stepId, offset, text } = piece;
  const [runUid, lease] = await Promise.all([deps.findRunOfLease(session, piece), deps.findLiveLease(piece)]);
  if (runUid !== undefined && lease !== undefined)
    deps.live.tell({ runUid, executionId, attempt, stepId, offset, text });
}

import type { Caller } from "@millwright/caller";
import { invalidArgument, isDomainError, notFound } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import { requiresNewRun, messageUidOf } from "../../runs/domain/followup.ts";
import type { MessageMode } from "../../runs/domain/message.ts";
import { checkNewRun, type NewRun } from "../../runs/domain/new-run.ts";
import { lifecycleOf } from "../../runs/domain/run-change.ts";
import type { Run } from "../../runs/domain/run.ts";
import { follow } from "./create-followup.ts";
import { createRuns, type CreateRunsDeps } from "../../runs/usecases/create-runs.ts";
import { conversationBusy, lockNewest } from "../../runs/usecases/newest-run.ts";
import { requireRunVerb } from "../../runs/usecases/run-access.ts";
import { dropFiles, storeFiles } from "../../runs/usecases/run-files.ts";

export type ContinueConversationDeps = CreateRunsDeps & {
  /** Returns the current (newest top-level) run of each conversation, of the runs that the team owns. */
  currentRunsOfConversations(conversationUids: readonly string[], teamUid: string): Promise<readonly Run[]>;
  runOfMessage(messageUid: string): Promise<RunUid | undefined>;
};

type Continuing = NewRun & { readonly conversationUid: string; readonly causeKey: string };

/** Maximum number of attempts. An attempt fails only if another caller continues the conversation concurrently. */
const ATTEMPTS_MAX = 4;

/**
 * Continues a conversation. If its current run has not ended or is BLOCKED, the run receives a follow-up; if the run
 * has ended, a new run is created. A cause takes effect once, without a time limit. If several causes continue a
 * conversation concurrently, the first creates the run and the others send follow-ups to it. An open debug window
 * receives no message: its run has ended.
 *
 * Errors: conversation_not_found (also if the team owns none of its runs) · conversation_required (invalid_argument) ·
 * not_authorized · conversation_busy (unavailable) · those of create-runs.
 */
export async function continueConversation(
  deps: ContinueConversationDeps,
  caller: Caller,
  request: NewRun,
): Promise<RunUid> {
  if (!isContinuing(request))
    throw invalidArgument(
      "conversation_required",
      "Continuing a conversation requires a conversation, a team as the owner and a cause.",
    );
  checkNewRun(request);
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const earlierUid = await findEarlierResult(deps, request);
    if (earlierUid) return earlierUid;
    const [newest] = await deps.currentRunsOfConversations([request.conversationUid], request.owner.uid);
    if (!newest) throw notFound("conversation");
    requireRunVerb(caller, newest, "run.manage");
    const runUid = await (requiresNewRun(newest.state)
      ? createNextRun(deps, caller, newest, request)
      : sendFollowup(deps, caller, newest, request));
    if (runUid) return runUid;
  }
  throw conversationBusy();
}

const isContinuing = (request: NewRun): request is Continuing =>
  request.owner.type === "team" && request.conversationUid !== undefined && request.causeKey !== undefined;

/** Returns the run that this cause created, or to which it sent its message. */
async function findEarlierResult(
  deps: ContinueConversationDeps,
  { owner, causeKey }: Continuing,
): Promise<RunUid | undefined> {
  const [createdUid] = await deps.findByCauses([{ ownerUid: owner.uid, causeKey }]);
  return createdUid ?? deps.runOfMessage(messageUidOf(owner.uid, causeKey));
}

/** Creates a run. Returns undefined if the conversation was continued concurrently. */
async function createNextRun(
  deps: ContinueConversationDeps,
  caller: Caller,
  newest: Run,
  request: Continuing,
): Promise<RunUid | undefined> {
  const created = await createRuns(deps, caller, [{ ...request, afterRunUid: newest.uid }]).catch((error: unknown) => {
    if (isDomainError(error) && error.reason === "conversation_busy") return [];
    throw error;
  });
  return created[0]?.run.uid;
}

/** Sends a follow-up. Returns undefined if the conversation was continued concurrently. */
async function sendFollowup(
  deps: ContinueConversationDeps,
  caller: Caller,
  newest: Run,
  request: Continuing,
): Promise<RunUid | undefined> {
  const { owner, causeKey, conversationUid, prompt = "" } = request;
  const uid = messageUidOf(owner.uid, causeKey);
  const attachments = await storeFiles(deps, request.attachments);
  const isSent = await deps.runs(async (tx) => {
    const run = await lockNewest(tx, { conversationUid, owner }, newest.uid);
    if (!run || requiresNewRun(lifecycleOf(run).run)) return false;
    const [created] = await tx.findByCauses([{ ownerUid: owner.uid, causeKey }]);
    if (created ?? (await tx.runOfMessage(uid))) return false;
    await follow(tx, caller, run, { uid, message: prompt, mode: request.mode as MessageMode, attachments });
    return true;
  });
  if (isSent) return newest.uid;
  await dropFiles(deps, attachments);
  return undefined;
}

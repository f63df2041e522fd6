import type { Caller } from "@millwright/caller";
import { actorOf } from "@millwright/caller";
import { DomainError, invalidArgument, notFound, requireTextWithin } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import {
  appendToPrompt,
  isAwaitingApproval,
  routeFollowup,
  type FollowupOutcome,
  type FollowupRoute,
} from "../../runs/domain/followup.ts";
import type { Attachment, Message, MessageMode } from "../../runs/domain/message.ts";
import { JUDGE_SOURCE } from "../../runs/domain/judge.ts";
import { checkNamed } from "../domain/prepared-attachment.ts";
import { lifecycleOf, PLATFORM_ACTOR, type LockedRun, type RunChange } from "../../runs/domain/run-change.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import { transition } from "../../runs/domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../../runs/store/run-transaction.ts";
import { storable } from "../../runs/domain/text.ts";
import { firstResultOr, type FirstResultDeps } from "../../runs/usecases/first-result.ts";
import { requeuedEvent, windowEnded } from "../../runs/usecases/execution-events.ts";
import { findMessageTarget, type RunTarget, type MessageTargetDeps } from "../../runs/usecases/run-target.ts";
import { settleChanges } from "../../runs/usecases/settle-changes.ts";
import { takeAttachments, type TakeAttachmentsDeps } from "./take-attachments.ts";

export type CreateFollowupDeps = MessageTargetDeps &
  TakeAttachmentsDeps &
  FirstResultDeps & { readonly runs: InRunTransaction };

export type FollowupRequest = {
  readonly target: RunTarget;
  readonly message: string;
  readonly mode: MessageMode;
  /** Uids of files that were prepared for the run. */
  readonly attachmentUids: readonly string[];
  /** File names that replace the prepared ones, by uid. */
  readonly attachmentNames?: Readonly<Record<string, string>>;
  /** A repeated request of the same principal with the same key returns the first result. */
  readonly idempotencyKey?: string;
};

export type FollowupResult = {
  readonly outcome: FollowupOutcome;
  readonly followupUid?: string;
  readonly runUid: string;
};

/**
 * Sends a message to a run. The state of the run decides the route. When this returns the message is stored: an
 * execution receives it, or it is reported as undelivered if its run ends first.
 *
 * Errors: run_not_found · conversation_not_found · not_authorized · operation_not_supported (unsupported: a judge run)
 * · message_empty, attachments_invalid (invalid_argument) · text_too_large · those of take-attachments, such as
 * unknown_attachment.
 */
export async function createFollowup(
  deps: CreateFollowupDeps,
  caller: Caller,
  request: FollowupRequest,
): Promise<FollowupResult> {
  const { uid } = await findMessageTarget(deps, caller, request.target);
  const { message, mode, attachmentUids: uids, attachmentNames: names = {}, idempotencyKey: key } = request;
  if (message.trim() === "" && uids.length === 0)
    throw invalidArgument("message_empty", "A follow-up must have a message or attachments.");
  requireTextWithin("The message", Buffer.byteLength(message));
  checkNamed(uids, names);
  // A repetition names the same target, although a newer run of the conversation may have taken its place.
  const target = "runUid" in request.target ? uid : request.target.conversationUid;
  const body = [target, message, mode, ...uids.map((file) => [file, names[file]])];
  const once = { principalUid: actorOf(caller).uid, operation: "followup", key, body };
  let attachments: readonly Attachment[];
  try {
    attachments = await takeAttachments(deps, uid, { uids, names });
  } catch (error) {
    return (await firstResultOr(deps, once, error)) as FollowupResult;
  }
  const newMessage = { uid: newUid(), message, mode, attachments };
  return deps.runs((tx) =>
    tx.once(once, async () => {
      const run = await lockForMessage(tx, uid);
      return follow(tx, caller, run, isAwaitingApproval(run) ? { ...newMessage, mode: mode || "normal" } : newMessage);
    }),
  );
}

/**
 * Locks the run of a message. If its debug window has expired or lost its worker, the window is closed first, so that
 * the message starts an execution.
 */
async function lockForMessage(tx: RunTransaction, uid: string): Promise<LockedRun> {
  const [run] = await tx.lockRuns([uid]);
  if (!run) throw notFound("run");
  if (run.source === JUDGE_SOURCE)
    throw new DomainError({
      kind: "unsupported",
      reason: "operation_not_supported",
      message: "A judge run accepts no follow-ups. Dispatch its scorer again.",
    });
  const { staleWindow } = run.execution;
  if (!staleWindow) return run;
  await settleChanges(tx, [windowEnded(run, { type: "lose" }, staleWindow)], [], {
    actor: PLATFORM_ACTOR,
    requestId: newUid(),
  });
  return lockForMessage(tx, uid);
}

export type FollowupMessage = Pick<FollowupRequest, "message" | "mode"> & {
  readonly uid: string;
  readonly attachments: readonly Attachment[];
};

/**
 * Stores a message to a locked run and the resulting change of the run. The mode is ignored if a live session receives
 * the message. Errors: text_too_large (too_large).
 */
export async function follow(
  tx: RunTransaction,
  caller: Caller,
  run: LockedRun,
  newMessage: FollowupMessage,
): Promise<FollowupResult> {
  const { uid, message, attachments } = newMessage;
  const text = storable(message);
  const route = routeFollowup(lifecycleOf(run));
  const mode = route.outcome === "live_session" ? "" : newMessage.mode;
  const by = actorOf(caller);
  const waiting = await tx.countUndeliveredTextBytes(run.uid);
  requireTextWithin(
    "The message, with the prompt and the follow-ups that the agent has not received yet,",
    waiting + Buffer.byteLength(text),
  );
  const directiveTo = route.via === "directive" ? { directiveTo: run.execution.id } : {};
  await tx.addMessage({
    uid,
    runUid: run.uid,
    kind: "followup",
    text,
    mode,
    author: by,
    isByPerson: isByPerson(caller),
    attachments,
    ...directiveTo,
  });
  const accepted: NewRunEvent = {
    kind: "followup_accepted",
    payload: { followup_uid: uid, outcome: route.outcome, by: by.uid },
  };
  await settleChanges(tx, [changeFor(run, route, accepted, { uid, text, mode, attachments })], [], {
    actor: by,
    requestId: caller.requestId,
  });
  return {
    outcome: route.outcome,
    runUid: run.uid,
    followupUid: route.outcome === "queued_prompt" ? undefined : uid,
  };
}

/** A run token or a service may act on behalf of a person, but such a message was not written by the person. */
const isByPerson = ({ principal, run }: Caller): boolean => principal.type === "user" && run === undefined;

function changeFor(
  run: LockedRun,
  route: FollowupRoute,
  accepted: NewRunEvent,
  message: Omit<Message, "kind">,
): RunChange {
  const current = lifecycleOf(run);
  if (route.queuesExecution) {
    const queued = requeuedEvent("followup");
    return {
      run,
      next: transition(current, { type: "wake" }),
      events: [accepted, queued],
      wait: run.wait ? null : undefined,
    };
  }
  const next = { ...current, lease: "unchanged", hasNextExecution: false } as const;
  if (route.via === "directive") {
    const attachments = message.attachments.map(({ uid, fileName, mimeType }) => ({
      uid,
      file_name: fileName,
      mime_type: mimeType,
    }));
    const payload = {
      message_uid: message.uid,
      text: message.text,
      mode: message.mode,
      ...(attachments.length > 0 ? { attachments } : {}),
    };
    return { run, next, events: [accepted], directive: { kind: "followup", payload } };
  }
  const isFirstStart = run.execution.seq === 1 && !run.hasStarted;
  return {
    run,
    next,
    events: [accepted],
    submittedPrompt: isFirstStart ? appendToPrompt(run.submittedPrompt, message.text) : undefined,
  };
}

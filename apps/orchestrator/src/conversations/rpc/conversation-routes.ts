import type { ServiceImpl } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { allowServices, callerOf } from "@millwright/rpc";
import type { MessageMode } from "../../runs/domain/message.ts";
import { newRun } from "../../runs/rpc/run-routes.ts";
import { continueConversation, type ContinueConversationDeps } from "../usecases/continue-conversation.ts";
import { createFollowup, type CreateFollowupDeps } from "../usecases/create-followup.ts";
import { prepareAttachments, type PrepareAttachmentsDeps } from "../usecases/prepare-attachments.ts";

export type ConversationRoutesDeps = CreateFollowupDeps & ContinueConversationDeps & PrepareAttachmentsDeps;

type Methods = Pick<
  ServiceImpl<typeof orchestrator.ConversationService>,
  "createFollowup" | "continueConversation" | "prepareAttachments"
>;

/**
 * The services that may call each method of ConversationService in their own name. The methods that are not listed are
 * called on behalf of a user or a run.
 */
export const conversationAllowList = allowServices(orchestrator.ConversationService, {
  createFollowup: ["factories"],
  continueConversation: ["factories"],
  describeConversation: ["factories"],
  describeConversations: ["factories"],
  findConversationsByUrl: ["factories"],
  getConversation: ["gateway"],
  getTimeline: ["gateway"],
});

/**
 * Returns the methods of ConversationService that change conversations. conversation-view-routes.ts has the methods
 * that read them.
 */
export const conversationMethods = (deps: ConversationRoutesDeps): Methods => ({
  async createFollowup(request, context) {
    const { runUid, conversationUid, message, mode, attachmentUids, attachmentNames, idempotencyKey } = request;
    if (!["", "normal", "plan", "orchestrate"].includes(mode))
      throw invalidArgument("mode_unknown", `mode must be normal, plan or orchestrate (got "${mode}").`);
    return createFollowup(deps, callerOf(context), {
      target: runUid ? { runUid } : { conversationUid },
      message,
      attachmentUids,
      attachmentNames,
      mode: mode as MessageMode,
      idempotencyKey: idempotencyKey || undefined,
    });
  },
  async continueConversation({ run }, context) {
    if (!run) throw invalidArgument("conversation_required", "The request must contain a run.");
    return { runUid: await continueConversation(deps, callerOf(context), newRun(run)) };
  },
  async prepareAttachments({ runUid, conversationUid, files }, context) {
    const prepared = await prepareAttachments(
      deps,
      callerOf(context),
      runUid ? { runUid } : { conversationUid },
      files,
    );
    return {
      runUid: prepared.runUid,
      attachments: prepared.attachments.map(({ uid, upload }) => ({
        uid,
        uploadUrl: upload.url,
        uploadHeaders: { ...upload.headers },
      })),
    };
  },
});

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { callerOf } from "@millwright/rpc";
import { artifactMessage, runMessage } from "../../runs/rpc/run-messages.ts";
import { describeRuns, type DescribeRunsDeps } from "../../runs/usecases/describe-runs.ts";
import { findConversationsByUrl, type FindConversationsByUrlDeps } from "../../runs/usecases/find-run-by-reference.ts";
import { publicStep } from "../domain/conversation-view.ts";
import { getBlockSnapshotUrl, type GetBlockSnapshotUrlDeps } from "../usecases/block-snapshots.ts";
import { describeConversation, type DescribeConversationDeps } from "../usecases/describe-conversation.ts";
import { describeConversations, type DescribeConversationsDeps } from "../usecases/describe-conversations.ts";
import { getConversation, type GetConversationDeps } from "../usecases/get-conversation.ts";
import { getTimeline } from "../usecases/get-timeline.ts";
import { listFollowups, type ListFollowupsDeps } from "../usecases/list-followups.ts";
import { listHandoffFiles, type ListHandoffFilesDeps } from "../usecases/list-handoff-files.ts";
import { getTranscriptUrl, type GetTranscriptUrlDeps } from "../usecases/transcripts.ts";
import { followupMessage, conversationStateMessage, timelineMessage } from "./conversation-messages.ts";

export type ConversationViewDeps = DescribeRunsDeps &
  GetConversationDeps &
  DescribeConversationDeps &
  DescribeConversationsDeps &
  ListFollowupsDeps &
  FindConversationsByUrlDeps &
  GetTranscriptUrlDeps &
  GetBlockSnapshotUrlDeps &
  ListHandoffFilesDeps;

export type ConversationViewMethods = Omit<
  ServiceImpl<typeof orchestrator.ConversationService>,
  "createFollowup" | "continueConversation" | "prepareAttachments"
>;

/**
 * Returns the methods of ConversationService that read conversations. conversation-routes.ts has the methods that
 * change them.
 */
export const conversationViewMethods = (deps: ConversationViewDeps): ConversationViewMethods => ({
  async getTimeline({ runUid }, context) {
    return {
      events: (await getTimeline(deps, callerOf(context), runUid)).map((entry) => timelineMessage(runUid, entry)),
    };
  },
  async getConversation({ runUid, conversationUid }, context) {
    const { conversationUid: uid, steps } = await getConversation(
      deps,
      callerOf(context),
      runUid ? { runUid } : { conversationUid },
    );
    return { conversationUid: uid, steps: steps.map((step) => publicStep(step)) };
  },
  async getTranscriptUrl({ runUid, conversationUid }, context) {
    return { url: await getTranscriptUrl(deps, callerOf(context), runUid ? { runUid } : { conversationUid }) };
  },
  async getBlockSnapshotUrl({ conversationUid }, context) {
    const { url, expiresAt } = await getBlockSnapshotUrl(deps, callerOf(context), conversationUid);
    return { url, expiresAt: timestampFromDate(expiresAt) };
  },
  async listHandoffFiles({ runUid }, context) {
    return { files: await listHandoffFiles(deps, callerOf(context), runUid) };
  },
  async describeConversation({ conversationUid, runUid, teamUid }, context) {
    const target = { ...(runUid ? { runUid } : { conversationUid }), teamUid: teamUid || undefined };
    const found = await describeConversation(deps, callerOf(context), target);
    const [newest, first] = (await describeRuns(deps, [found.newestRun, found.firstRun])).map(runMessage);
    return {
      conversationUid: found.conversationUid,
      newestRun: newest!,
      firstRun: first!,
      outputs: found.outputs.map(artifactMessage),
    };
  },
  async describeConversations({ conversationUids, withOutputs, teamUid }, context) {
    const conversationStates = await describeConversations(deps, callerOf(context), {
      conversationUids,
      withOutputs,
      teamUid: teamUid || undefined,
    });
    return { conversations: conversationStates.map(conversationStateMessage) };
  },
  async findConversationsByUrl({ teamUid, url }, context) {
    if (callerOf(context).principal.type !== "service") throw notFound("conversation");
    return { conversationUids: [...(await findConversationsByUrl(deps, teamUid, url))] };
  },
  async listFollowups(request, context) {
    const { followups, nextPageToken } = await listFollowups(deps, callerOf(context), request);
    return { followups: followups.map(followupMessage), nextPageToken };
  },
});

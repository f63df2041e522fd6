import { optionalTimestamp } from "@millwright/rpc";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { followupState, type Followup } from "../../runs/domain/followup.ts";
import { isRunTypeCancellable } from "../../runs/domain/run.ts";
import { artifactMessage } from "../../runs/rpc/run-messages.ts";
import type { TimelineEntry } from "../domain/timeline-view.ts";
import type { ConversationState } from "../usecases/describe-conversations.ts";

export const followupMessage = (followup: Followup): orchestrator.Followup => {
  const { uid, text, authorType, authorUid, createdAt, deliveredAt, undeliverable = "" } = followup;
  return create(orchestrator.FollowupSchema, {
    ...{
      uid,
      text,
      authorType,
      authorUid,
      state: followupState(followup),
      createdAt: timestampFromDate(createdAt),
      reason: undeliverable,
    },
    ...omitUndefined({ deliveredAt: optionalTimestamp(deliveredAt) }),
  });
};

/**
 * Converts the state of a conversation. If the caller may not see the current run, only `hidden` and the outputs are
 * set.
 */
export const conversationStateMessage = ({
  run,
  isVisible,
  outputs,
}: ConversationState): orchestrator.ConversationStanding =>
  create(orchestrator.ConversationStandingSchema, {
    conversationUid: run.conversationUid,
    ...(isVisible
      ? {
          runUid: run.uid,
          state: run.state,
          version: run.version,
          isRunTypeCancellable: isRunTypeCancellable(run),
          ownerType: run.owner.type,
          ownerUid: run.owner.uid,
          creatorUid: run.creatorUid,
          metadata: { ...run.metadata },
          outputs: outputs.map(artifactMessage),
          agentUid: run.agentUid,
          agentName: run.agentName,
          factoryUid: run.factoryUid,
        }
      : { hidden: true, outputs: outputs.map(artifactMessage) }),
  });

export const timelineMessage = (runUid: string, entry: TimelineEntry): orchestrator.TimelineEvent =>
  create(orchestrator.TimelineEventSchema, {
    eventUuid: entry.uid,
    runUid,
    eventType: entry.type,
    occurredAt: timestampFromDate(entry.occurredAt),
    ...omitUndefined({
      executionId: entry.executionId === undefined ? undefined : BigInt(entry.executionId),
      payload: entry.payload,
    }),
  });

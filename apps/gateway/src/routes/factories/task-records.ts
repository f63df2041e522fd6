import type { z } from "zod";
import type { factories as proto, orchestrator } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import type { RouteInput } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { isoTime } from "../formats/json-values.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { artifactItem } from "../runs/run-record.ts";
import type { RunState } from "../runs/run-schemas.ts";
import type { CurrentRun, Stage, Task } from "./task-schemas.ts";

type RouteCall = Pick<RouteInput, "request"> & { caller: NonNullable<RouteInput["caller"]> };

/** Returns the functions that compose the public records of tasks from their service and the orchestrator. */
export function taskRecords(conversations: Upstreams["conversations"], findProfiles: FindProfiles) {
  /**
   * Returns the record of a task with its author and the outputs of all run trees of its conversation in the team, if
   * the caller may view them.
   */
  const taskWithOutputs = async (task: proto.Task, input: RouteCall) => {
    const { conversationUid, teamUid } = task;
    const described = await conversations
      .describeConversation({ conversationUid, teamUid }, onBehalf(input))
      .catch(unlessHidden);
    const authors = await findProfiles([task.starterUid].filter(Boolean));
    return {
      ...taskRecord(task),
      outputs: (described?.outputs ?? []).map(artifactItem),
      ...omitUndefined({ author: authors.get(task.starterUid) }),
    };
  };
  /**
   * Returns the records of tasks in lists. Reads requested outputs and current runs from the orchestrator with one call
   * for the whole page.
   */
  const tasksInList = async (
    page: readonly proto.Task[],
    include: { full: boolean; currentRun: boolean },
    input: RouteCall,
  ) => {
    const needsConversations = (include.full || include.currentRun) && page.length > 0;
    const [authors, described] = await Promise.all([
      findProfiles([...new Set(page.map(({ starterUid }) => starterUid).filter(Boolean))]),
      needsConversations
        ? conversations.describeConversations(
            {
              conversationUids: page.map(({ conversationUid }) => conversationUid),
              withOutputs: include.full,
              teamUid: page[0]!.teamUid,
            },
            onBehalf(input),
          )
        : undefined,
    ]);
    const conversationOf = new Map(
      described?.conversations.map((conversation) => [conversation.conversationUid, conversation]),
    );
    return page.map((task) => {
      const conversation = conversationOf.get(task.conversationUid);
      return {
        ...taskRecord(task),
        ...omitUndefined({ author: authors.get(task.starterUid) }),
        ...(include.full && {
          outputs: (conversation?.outputs ?? []).map(artifactItem),
          ...omitUndefined({ ticket_source: task.ticketSource, ticket_id: task.ticketId }),
        }),
        current_run: include.currentRun && conversation && !conversation.hidden ? currentRun(conversation) : undefined,
      };
    });
  };
  return { taskWithOutputs, tasksInList };
}

/**
 * Returns undefined for a not_found error, because a task is readable without permission to view its runs. Throws every
 * other error.
 */
function unlessHidden(error: unknown): undefined {
  if (isDomainError(error) && error.kind === "not_found") return undefined;
  throw error;
}

const currentRun = ({
  runUid,
  state,
  isRunTypeCancellable,
}: orchestrator.ConversationStanding): z.input<typeof CurrentRun> => ({
  run_id: runUid,
  state: state as z.input<typeof RunState>,
  is_run_type_cancellable: isRunTypeCancellable,
});

const taskRecord = (task: proto.Task): z.input<typeof Task> => ({
  uid: task.uid,
  factory_uid: task.factoryUid,
  conversation_id: task.conversationUid,
  run_id: task.runUid,
  title: task.title,
  description: task.description ?? null,
  stage: task.stage as z.input<typeof Stage>,
  created_at: isoTime(task.createdAt!),
  updated_at: isoTime(task.updatedAt!),
});

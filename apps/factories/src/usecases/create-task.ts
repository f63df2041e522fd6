import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { as, isUuid, type ConversationUid, type RunUid } from "@millwright/ids";
import { newTask, readStage, readTitle, type ConversationState, type Task } from "../domain/task.ts";
import { originOf } from "../events/origin.ts";
import { taskCreated } from "../events/task-events.ts";
import type { TaskStore } from "../store/task-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type CreateTaskDeps = ScopeDeps & {
  tasks: Pick<TaskStore, "create">;
  runs: ScopeDeps["runs"] & {
    conversationStateOf(
      caller: Caller,
      teamUid: string,
      conversationUid: string,
    ): Promise<ConversationState | undefined>;
  };
  clock: Clock;
};

export type CreateTaskInput = {
  factoryUid: string;
  title: string;
  conversationUid: string;
  description?: string;
  stage: string;
  idempotencyKey: string;
};

/**
 * Creates a task and binds it to a conversation in which the factory's team has a run. Personal runs of the
 * conversation are ignored.
 * Errors: factory_not_found · not_authorized · title_required · invalid_stage · invalid_conversation (unknown, of
 * another team, or personal) · conversation_bound (conflict) · idempotency_mismatch (conflict).
 */
export async function createTask(
  deps: CreateTaskDeps,
  caller: Caller,
  { idempotencyKey, ...input }: CreateTaskInput,
): Promise<Task> {
  const factory = await findFactory(deps, caller, input.factoryUid, "task.manage");
  const title = readTitle(input.title);
  const stage = readStage(input.stage || "TRIAGE");
  const conversationUid = as<ConversationUid>(input.conversationUid.toLowerCase());
  const conversation = isUuid(conversationUid)
    ? await deps.runs.conversationStateOf(caller, factory.teamUid, conversationUid)
    : undefined;
  if (!conversation || conversation.isHidden || conversation.teamUid !== factory.teamUid) {
    throw invalidArgument(
      "invalid_conversation",
      "conversation_id must be a conversation with a run of the factory's team.",
    );
  }
  const task = newTask(
    {
      factoryUid: factory.uid,
      teamUid: factory.teamUid,
      conversationUid,
      runUid: as<RunUid>(conversation.runUid),
      startedByUid: conversation.creatorUid,
      title,
      ticketSource: conversation.metadata["ticket_source"] ?? null,
      ticketId: conversation.metadata["ticket_id"] ?? null,
      stage,
      stageRunVersion: { runUid: conversation.runUid, version: conversation.version },
      description: input.description,
    },
    deps.clock.now(),
  );
  const request = idempotentRequest(caller.principal.uid, `create-task ${factory.uid}`, idempotencyKey, input);
  return deps.tasks.create(task, taskCreated(task, originOf(caller)), request);
}

import { as, type FactoryUid, type TaskUid } from "@millwright/ids";
import { loopOf } from "../domain/automation.ts";
import { withEnvelope } from "../domain/envelope.ts";
import { checkStageMove } from "../domain/stage-trigger.ts";
import type { Task } from "../domain/task.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { TaskStore } from "../store/task-store.ts";
import type { EventEvaluation } from "./decide-event.ts";

export type EvaluateStageChangeDeps = {
  tasks: Pick<TaskStore, "find">;
  runs: {
    /** Returns the automations that caused a root run, oldest first, or none for runs that users started. */
    chainOf(teamUid: string, rootRunUid: string): Promise<readonly string[]>;
  };
};

type Subject = { task_uid: string; stage: string; previous_stage: string; by_root_run_uid?: string };

/** Evaluates a change of a task's stage. A change by an automation's run does not start that automation again. */
export async function evaluateStageChange(
  { tasks, runs }: EvaluateStageChangeDeps,
  event: TriggerEvent,
): Promise<EventEvaluation> {
  const { task_uid: uid, stage, previous_stage: from, by_root_run_uid: rootRunUid } = event.subject as Subject;
  const task = await tasks.find(as<FactoryUid>(event.factoryUid), as<TaskUid>(uid));
  const chain = rootRunUid === undefined ? [] : await runs.chainOf(event.teamUid, rootRunUid);
  return {
    check: checkStageMove({ stage, from, ticketSource: task?.ticketSource ?? null }),
    veto: (automation) => loopOf(automation, chain),
    runInput: ({ rules }) => {
      const json = JSON.stringify(
        { ...event.subject, occurred_at: event.occurredAt, ...(task && known(task)) },
        undefined,
        2,
      );
      return {
        prompt: withEnvelope(
          rules.prompt,
          "work item",
          { task: uid, stage: `${from} to ${stage}` },
          Buffer.byteLength(json),
        ),
        source: "API",
        metadata: { task_uid: uid },
        payload: { json },
        chain,
      };
    },
  };
}

const known = ({ title, description, conversationUid, runUid, ticketSource, ticketId }: Task) => ({
  title,
  description,
  conversation_id: conversationUid,
  run_id: runUid,
  ticket_source: ticketSource,
  ticket_id: ticketId,
});

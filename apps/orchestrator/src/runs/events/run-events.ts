import type { NewEvent } from "@millwright/events";
import { omitUndefined } from "@millwright/json";
import type { ChangeContext, LockedRun } from "../domain/run-change.ts";
import type { Next } from "../domain/run-state.ts";
import type { Owner, RunState } from "../domain/run.ts";

/** The run of a lifecycle event. */
type Subject = { readonly uid: string; readonly owner: Owner };

const runEvent = (
  type: string,
  run: Subject,
  version: number,
  context: ChangeContext,
  payload: NewEvent["payload"],
): NewEvent => ({
  entity: "run",
  type: `millwright.run.${type}.v1`,
  entityUid: run.uid,
  entityVersion: version,
  teamUid: run.owner.type === "team" ? run.owner.uid : undefined,
  actor: { type: context.actor.type, uid: context.actor.uid },
  requestId: context.requestId,
  cause: context.cause || undefined,
  traceparent: context.traceparent || undefined,
  payload,
});

export type CreatedRun = Subject & {
  readonly rootRunUid: string;
  readonly parentRunUid?: string;
  readonly conversationUid: string;
  readonly retryOfRunUid?: string;
  readonly factoryUid?: string;
  readonly origin?: string;
  readonly title: string;
  readonly isTitleGiven: boolean;
  readonly source: string;
  readonly metadata: Readonly<Record<string, string>>;
};

/**
 * Returns the event of a created run. It never contains the prompt, or a title generated from the prompt. If `origin`
 * is "dispatch", the factories service creates a task for the run. `retry_of_run_uid`: if that run is the current run
 * of a task, the task continues with this run.
 */
export const runCreated = (run: CreatedRun, context: ChangeContext): NewEvent =>
  runEvent(
    "created",
    run,
    1,
    context,
    omitUndefined({
      run_uid: run.uid,
      conversation_uid: run.conversationUid,
      root_run_uid: run.rootRunUid,
      parent_run_uid: run.parentRunUid,
      retry_of_run_uid: run.retryOfRunUid,
      origin: run.origin || undefined,
      factory_uid: run.factoryUid,
      title: run.isTitleGiven ? run.title : undefined,
      source: run.source,
      ticket_source: run.metadata["ticket_source"] || undefined,
      ticket_id: run.metadata["ticket_id"] || undefined,
    }),
  );

/** Returns the event of a run that a claim offered to a worker; claims do not load runs. */
export const offered = (run: Subject, version: number, context: ChangeContext): NewEvent =>
  runEvent("state_changed", run, version, context, { run_uid: run.uid, from: "QUEUED", to: "PENDING" });

export const stateChanged = (run: LockedRun, to: RunState, version: number, context: ChangeContext): NewEvent =>
  runEvent("state_changed", run, version, context, { run_uid: run.uid, from: run.state, to });

/**
 * Returns the event of an attempt that ended without changing its run's state: the run had already ended, or waits for
 * its children.
 */
export const attemptEnded = (run: LockedRun, version: number, context: ChangeContext): NewEvent =>
  runEvent("attempt_ended", run, version, context, {
    run_uid: run.uid,
    state: run.state,
    execution_id: run.execution.id,
    attempt: run.execution.attempt,
  });

/** Returns the event of a run that ended. A run may be continued later and end again. */
export const runFinished = (run: LockedRun, next: Next, version: number, context: ChangeContext): NewEvent =>
  runEvent(
    "finished",
    run,
    version,
    context,
    omitUndefined({
      run_uid: run.uid,
      root_run_uid: run.rootRunUid,
      conversation_uid: run.conversationUid,
      source: run.source,
      state: next.run,
      factory_uid: run.factoryUid,
      agent_uid: run.agentUid,
      error_code: next.status?.errorCode || undefined,
      cause: context.cause || undefined,
    }),
  );

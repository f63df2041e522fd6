import type { RunUid } from "@millwright/ids";
import type { JsonObject } from "./run.ts";

/** Written by the orchestrator, in the transaction of the change. */
export const OWN_EVENT_KINDS = [
  "run_created", // {}
  "run_queued", // {reason: offer_expired | declined | followup | children | restarted | resumed}: queued again
  "run_claimed", // {worker_host}
  "worker_lost", // {worker_host, reason, attempt, message?}
  "worker_stopped", // {worker_host, reason, message, attempt}: the worker stopped and returned the run; counts as no loss
  "attempt_failed", // {worker_host, reason, message, attempt}: the worker could not execute the run and returned it; counts as a lost worker
  "dispatch_failed", // {worker_host, reason, message, attempt}: no machine could be started; counts as a worker lost in its setup
  "followup_accepted", // {followup_uid, outcome, by}
  "interrupt_requested", // {by}
  "followup_undelivered", // {followup_uid, reason}: accepted, but its run ended before the agent could see it
  "child_finished", // {run_uid, state}
  "run_finished", // {state, reason, message?, error_code?, retryable?, cancelled_by?}: `reason` names the cause of every end, see execution-events.ts
  "run_waiting", // {message}
  "artifact_created", // {artifact_uid, artifact_type, title?, url?}
  "artifact_updated", // as artifact_created: a plan was reported again under its title
  "usage_recorded", // {call_id, model_id, …tokens, estimated?}: estimated where the call was cut off before the provider had counted it
  "debug_window_opened", // {window_ms}: the setup failed, and its worker keeps workspace and shell
  "debug_window_ended", // {reason: window_over | worker_lost | cancelled | event_quota | event_size_quota | other, as the worker says}
  "stalled", // {idle_seconds}: a running agent that writes nothing
] as const;

/** Written by workers. */
export const WORKER_EVENT_KINDS = [
  "sandbox_ready", // {kind, limits: {memory_bytes, processes, cpus, file_bytes, disk_bytes, held_by}}
  "image_substituted", // {image}
  "repository_cloned", // {owner, name, branch, base_sha}
  "workspace_reused", // {}: the worker had kept the workspace of the execution before this one; nothing was cloned or restored
  "setup_command", // {command, exit_code, output}
  "agent_started", // {session_id}: the run is INPROGRESS from here on
  "agent_resumed", // {session_id, lost, text, repeats}: a new attempt continues from the events of a lost one; `repeats`: calls that a script makes again
  "harness_session", // {harness, session_id}: the session of an agent program of others, by which its next process goes on
  "harness_usage", // {harness, counted?, tool_calls, missed_turns, lost_turns}: the program's own numbers; a turn under way is missed and lost
  "harness_line", // {harness, line, truncated?}: a line of an agent program of others that its worker does not know, as it came
  "mcp_server_started", // {server, transport, tools, left_out?}
  "mcp_server_failed", // {server, text}: the agent works without its tools
  "message", // {role, text, message_uid?, kind?, mode?}: with message_uid, that message was handed to the agent
  "model_step", // {step_id, text, tool_calls, model_id, usage?, end?}
  "tool_start", // {call_id, name, category, input, repeated?}; `repeated`: a resumed script makes the call again
  "command_output", // {call_id, stream, text}: of a command that still runs
  "tool_end", // {call_id, name, category, state, output, duration_ms, repeated?, end?}
  "pushed", // {repository, branch, sha}
  "limit_exceeded", // {reason, resource, limit, by}: of the sandbox; the run ends with it
  "checkpoint", // {snapshot_key}: the workspace as all steps before this event have left it
  "turn_end", // {outcome, …}: as `end` of the steps, which says how a turn ends
  "egress_denied", // {host, port, reason, more?}: once per host, and no more after `more`
  "warning", // {text}
  "model_retry", // {text, call_id, try, tries_max, delay_ms, status?}: a model call gave no answer and is made again
  "conversation_summarized", // {summary, kept_from, model_id, usage?}: what the model reads in place of everything before the event of that id
  "sandbox_stopped", // {reason}
] as const;

export type OwnEventKind = (typeof OWN_EVENT_KINDS)[number];
export type WorkerEventKind = (typeof WORKER_EVENT_KINDS)[number];

export const isWorkerEventKind = (kind: string): kind is WorkerEventKind =>
  (WORKER_EVENT_KINDS as readonly string[]).includes(kind);

/** An event to be added by the orchestrator. */
export type NewRunEvent = { readonly kind: OwnEventKind; readonly payload: JsonObject; readonly executionId?: number };

/** An event as an attempt of a worker sends it; `clientSeq` counts 1, 2, 3 … per attempt. */
export type WorkerEvent = {
  readonly clientSeq: number;
  readonly at: Date;
  readonly kind: WorkerEventKind;
  readonly payload: JsonObject;
  /** It was larger than an event may be; its payload was left out. */
  readonly isOversized?: boolean;
};

/** Something that happened in a run. `seq` is gapless per run, across executions. */
export type RunEvent = {
  readonly runUid: RunUid;
  readonly seq: number;
  readonly uid: string;
  readonly kind: OwnEventKind | WorkerEventKind;
  readonly occurredAt: Date;
  readonly executionId?: number;
  /** Absent: written by the orchestrator. */
  readonly attempt?: number;
  /** Written by an attempt that was lost in its setup, and has been replaced: conversation and history leave it out. */
  readonly isSuperseded: boolean;
  readonly payload: JsonObject;
};

/** Bounds of what an attempt may send. */
export const EVENT_BATCH_MAX = 200;
export const EVENT_BATCH_BYTES_MAX = 256 * 1024;
/** One event may be larger than a batch, and then is one of its own. */
export const EVENT_BYTES_MAX = 1024 * 1024;
export const EVENTS_PER_RUN_MAX = 50_000;

/** Why a run is stopped that writes more than it may. */
export type EventQuota = "event_quota" | "event_size_quota";

export const quotaMessage = (quota: EventQuota): string =>
  quota === "event_quota"
    ? `The run wrote more than ${EVENTS_PER_RUN_MAX} events.`
    : `The run wrote an event of more than ${EVENT_BYTES_MAX} bytes.`;

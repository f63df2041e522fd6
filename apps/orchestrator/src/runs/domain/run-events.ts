import type { RunUid } from "@millwright/ids";
import type { JsonObject } from "./run.ts";

/** Events that the orchestrator writes, in the transaction of the change. */
export const OWN_EVENT_KINDS = [
  "run_created", // {}
  "run_queued", // {reason: offer_expired | declined | followup | children | restarted | resumed}: queued again
  "run_claimed", // {worker_host}
  "worker_lost", // {worker_host, reason, attempt, message?}
  // {worker_host, reason, message, attempt}: the worker stopped and returned the run; no loss is counted
  "worker_stopped",
  // {worker_host, reason, message, attempt}: the worker could not execute the run and returned it; counts as a lost
  // worker
  "attempt_failed",
  // {worker_host, reason, message, attempt}: no machine could be started; counts as a worker lost during setup
  "dispatch_failed",
  "followup_accepted", // {followup_uid, outcome, by}
  "interrupt_requested", // {by}
  "followup_undelivered", // {followup_uid, reason}: the run ended before the follow-up was delivered
  "child_finished", // {run_uid, state}
  // {state, reason, message?, error_code?, retryable?, cancelled_by?}: `reason` is the cause of the end, see
  // execution-events.ts
  "run_finished",
  "run_waiting", // {message}
  "artifact_created", // {artifact_uid, artifact_type, title?, url?}
  "artifact_updated", // as artifact_created: a plan was reported again with the same title
  // {call_id, model_id, …tokens, estimated?}: `estimated`: the call was aborted before the provider reported its tokens
  "usage_recorded",
  "debug_window_opened", // {window_ms}: the setup failed, and its worker retains workspace and shell
  // {reason: window_expired | worker_lost | cancelled | event_quota | event_size_quota | any reason of the worker}
  "debug_window_ended",
  "stalled", // {idle_seconds}: a running agent writes no events
] as const;

/** Events that workers write. */
export const WORKER_EVENT_KINDS = [
  "sandbox_ready", // {kind, limits: {memory_bytes, processes, cpus, file_bytes, disk_bytes, enforced_by}}
  "image_substituted", // {image}
  "repository_cloned", // {owner, name, branch, base_sha}
  // {}: the worker had retained the workspace of the previous execution; nothing was cloned or restored
  "workspace_reused",
  "setup_command", // {command, exit_code, output}
  "agent_started", // {session_id}: the run becomes INPROGRESS
  // {session_id, lost, text, repeats}: a new attempt continues from the events of a lost one; `repeats`: calls that a
  // script executes again
  "agent_resumed",
  "harness_session", // {harness, session_id}: the session of a third-party harness, which its next process resumes
  // {harness, counted?, tool_calls, missed_turns, lost_turns}: the harness's own counts; a turn in progress counts as
  // missed and lost
  "harness_usage",
  // {harness, line, truncated?}: an output line of a third-party harness that the worker cannot parse, unchanged
  "harness_line",
  "mcp_server_started", // {server, transport, tools, left_out?}
  "mcp_server_failed", // {server, text}: the agent runs without the tools of the server
  "message", // {role, text, message_uid?, kind?, mode?}: with message_uid, that message was delivered to the agent
  "model_step", // {step_id, text, tool_calls, model_id, usage?, end?}
  "tool_start", // {call_id, name, category, input, repeated?}; `repeated`: a resumed script executes the call again
  "command_output", // {call_id, stream, text}: output of a command in progress
  "tool_end", // {call_id, name, category, state, output, duration_ms, repeated?, end?}
  "pushed", // {repository, branch, sha}
  "limit_exceeded", // {reason, resource, limit, by}: a limit of the sandbox, which ends the run
  "checkpoint", // {snapshot_key}: the workspace after all steps before this event
  "turn_end", // {outcome, …}: the same form as `end` of the steps, which states how a turn ends
  "egress_denied", // {host, port, reason, more?}: once per host; `more`: no further event follows
  "warning", // {text}
  "model_retry", // {text, call_id, try, tries_max, delay_ms, status?}: a model call returned no answer and is retried
  // {summary, retained_from, model_id, usage?}: replaces, for the model, all events before the one with the id `retained_from`
  "conversation_summarized",
  "sandbox_stopped", // {reason}
] as const;

export type OwnEventKind = (typeof OWN_EVENT_KINDS)[number];
export type WorkerEventKind = (typeof WORKER_EVENT_KINDS)[number];

export const isWorkerEventKind = (kind: string): kind is WorkerEventKind =>
  (WORKER_EVENT_KINDS as readonly string[]).includes(kind);

/** An event that the orchestrator appends. */
export type NewRunEvent = { readonly kind: OwnEventKind; readonly payload: JsonObject; readonly executionId?: number };

/** An event as sent by an attempt of a worker. `clientSeq` counts 1, 2, 3 … per attempt. */
export type WorkerEvent = {
  readonly clientSeq: number;
  readonly at: Date;
  readonly kind: WorkerEventKind;
  readonly payload: JsonObject;
  /** The event exceeded the maximum size, so its payload was left out. */
  readonly isOversized?: boolean;
};

/** An event of a run. `seq` is gapless per run, across executions. */
export type RunEvent = {
  readonly runUid: RunUid;
  readonly seq: number;
  readonly uid: string;
  readonly kind: OwnEventKind | WorkerEventKind;
  readonly occurredAt: Date;
  readonly executionId?: number;
  /** Absent: the orchestrator wrote the event. */
  readonly attempt?: number;
  /**
   * True if the event was written by an attempt that was lost during setup and replaced. Conversation and history leave
   * it out.
   */
  readonly isSuperseded: boolean;
  readonly payload: JsonObject;
};

/** Limits of the events that an attempt may send. */
export const EVENT_BATCH_MAX = 200;
export const EVENT_BATCH_BYTES_MAX = 256 * 1024;
/** A single event may exceed the size of a batch. It is then sent as a batch of its own. */
export const EVENT_BYTES_MAX = 1024 * 1024;
export const EVENTS_PER_RUN_MAX = 50_000;

/** Why a run is stopped that exceeds its event limits. */
export type EventQuota = "event_quota" | "event_size_quota";

export const quotaMessage = (quota: EventQuota): string =>
  quota === "event_quota"
    ? `The run wrote more than ${EVENTS_PER_RUN_MAX} events.`
    : `The run wrote an event of more than ${EVENT_BYTES_MAX} bytes.`;

/** An attempt of an execution, with its run. */
export type AttemptRef = { readonly runUid: string; readonly executionId: number; readonly attempt: number };

export type AppendOutcome =
  | { readonly outcome: "appended"; readonly ackedClientSeq: number; readonly lastSeq: number }
  | { readonly outcome: "gap"; readonly ackedClientSeq: number }
  | { readonly outcome: "lease_lost" };

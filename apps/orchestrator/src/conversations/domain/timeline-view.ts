import { uidOf } from "@millwright/ids";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject, TerminalState } from "../../runs/domain/run.ts";

/** A published setup or lifecycle event. */
export type TimelineEntry = {
  readonly uid: string;
  readonly type: string;
  readonly occurredAt: Date;
  readonly executionId?: number;
  readonly payload?: JsonObject;
};

const FINISHED: Readonly<Record<TerminalState, string>> = {
  SUCCEEDED: "oz_run_done",
  BLOCKED: "oz_run_blocked",
  CANCELLED: "oz_run_cancelled",
  FAILED: "oz_run_failed",
  ERROR: "oz_run_errored",
};

/** Returns the published events among a run's events, in order. Events of superseded attempts are left out. */
export const timelineOf = (events: readonly RunEvent[]): TimelineEntry[] =>
  events.filter((event) => !event.isSuperseded).flatMap(entriesOf);

function entriesOf(event: RunEvent): TimelineEntry[] {
  switch (event.kind) {
    case "run_created":
      return [entry(event, "oz_run_created")];
    case "run_claimed":
      return [entry(event, "oz_run_claimed", pick(event.payload, "worker_host"))];
    case "sandbox_ready":
      return [entry(event, "worker_container_ready")];
    case "agent_started":
    case "agent_resumed":
      return [
        { ...entry(event, "shared_session_started", pick(event.payload, "session_id")), uid: secondUid(event.uid) },
        entry(event, "agent_started"),
      ];
    case "run_finished":
      return [finished(event)];
    case "sandbox_stopped":
      return [entry(event, "vm_shutdown", pick(event.payload, "reason"))];
    default:
      return [];
  }
}

function finished(event: RunEvent): TimelineEntry {
  const state = event.payload["state"] as TerminalState;
  switch (state) {
    case "FAILED":
    case "ERROR":
      return entry(event, FINISHED[state], pick(event.payload, "message", "error_code", "retryable"));
    case "CANCELLED":
      return entry(event, FINISHED[state], pick(event.payload, "cancelled_by"));
    default:
      return entry(event, FINISHED[state]);
  }
}

function entry(event: RunEvent, type: string, payload: JsonObject = {}): TimelineEntry {
  return {
    uid: event.uid,
    type,
    occurredAt: event.occurredAt,
    executionId: event.executionId,
    payload: Object.keys(payload).length > 0 ? payload : undefined,
  };
}

const pick = (payload: JsonObject, ...keys: readonly string[]): JsonObject =>
  Object.fromEntries(
    keys.flatMap((key) => (payload[key] === undefined || payload[key] === null ? [] : [[key, payload[key]]])),
  );

/**
 * Returns the uid of the second published event of an internal event. It is derived from the uid, so that it is stable.
 */
const secondUid = (uid: string): string => uidOf(`second of ${uid}`);

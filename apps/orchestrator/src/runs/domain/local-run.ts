import { omitUndefined } from "@millwright/json";
import type { WorkerEvent } from "./run-events.ts";
import type { JsonObject, Outcome } from "./run.ts";
import type { WorkerSession } from "./worker-session.ts";

/** `worker_host` of executions that a client executes itself. */
export const LOCAL_HOST = "local";

/** A command that a client executes itself. `clientUid` identifies the client in its later reports. */
export type LocalStart = { readonly clientUid: string; readonly command: readonly string[] };

/** An event of a command, reported by its client. `seq` counts 1, 2, 3 … */
export type LocalEvent = { readonly seq: number; readonly at: Date } & (
  | { readonly kind: "output"; readonly stream: "stdout" | "stderr"; readonly text: string }
  /** The follow-up was delivered to the command. */
  | { readonly kind: "followup"; readonly followupUid: string }
  | { readonly kind: "end"; readonly end: LocalEnd }
);

/** The end of a command. `output` contains its beginning and its end. */
export type LocalEnd = {
  readonly exitCode?: number;
  readonly signal?: string;
  /** True if the user stopped it. */
  readonly isInterrupted: boolean;
  readonly output: string;
  readonly isTruncated: boolean;
};

/** Returns the client as a worker session. */
export const localSession = (clientUid: string): WorkerSession => ({
  uid: clientUid,
  workerHost: LOCAL_HOST,
  keyUid: "",
  state: "READY",
  harnessTypes: [],
  images: [],
});

const CALL_ID = "local";
const ACTION = { call_id: CALL_ID, name: "run_command", category: "command" };

/**
 * Returns the first events of a local run, as an agent would write them: one step that runs one command. A follow-up
 * that is executed in a sandbox continues from them.
 */
export function firstEvents(
  command: string,
  message: { readonly uid: string; readonly text: string },
  sessionUid: string,
  at: Date,
): WorkerEvent[] {
  const events: [WorkerEvent["kind"], JsonObject][] = [
    ["agent_started", { session_id: sessionUid }],
    ["message", { role: "user", text: message.text, kind: "prompt", message_uid: message.uid }],
    [
      "model_step",
      { step_id: `${CALL_ID}-1`, text: "", tool_calls: [{ call_id: CALL_ID, name: "shell", input: { command } }] },
    ],
    ["tool_start", { ...ACTION, input: { command } }],
  ];
  return events.map(([kind, payload], n) => ({ clientSeq: n + 1, at, kind, payload }));
}

/** The number of events of `firstEvents`, which precede the client's first event. */
const FIRST_EVENT_COUNT = 4;
export const clientSeqOf = (seq: number): number => seq + FIRST_EVENT_COUNT;
export const seqOf = (clientSeq: number): number => Math.max(0, clientSeq - FIRST_EVENT_COUNT);

/** Returns the event of a client as an event of a worker. `texts`: texts of follow-ups, by uid. */
export function workerEvent(event: LocalEvent, texts: ReadonlyMap<string, string>): WorkerEvent {
  const of = (kind: WorkerEvent["kind"], payload: JsonObject): WorkerEvent => ({
    clientSeq: clientSeqOf(event.seq),
    at: event.at,
    kind,
    payload,
  });
  switch (event.kind) {
    case "output":
      return of("command_output", { call_id: CALL_ID, stream: event.stream, text: event.text });
    case "followup":
      return texts.has(event.followupUid)
        ? of("message", {
            role: "user",
            text: texts.get(event.followupUid) ?? "",
            kind: "followup",
            message_uid: event.followupUid,
          })
        : of("warning", { text: "The client reported a follow-up that was not sent to this run." });
    case "end": {
      const { exitCode, signal, output, isTruncated } = event.end;
      const result = omitUndefined({
        exit_code: exitCode,
        signal: signal || undefined,
        output,
        truncated: isTruncated,
      });
      return of("tool_end", { ...ACTION, state: exitCode === 0 ? "completed" : "failed", output: result });
    }
    default:
      return event satisfies never;
  }
}

/** Returns the outcome of a run from the end of its command. */
export function outcomeOf({ exitCode, signal, isInterrupted }: LocalEnd): {
  readonly outcome: Outcome;
  readonly message?: string;
  readonly error?: { code: string; message: string; retryable: boolean; reason: string };
} {
  if (isInterrupted) return { outcome: "CANCELLED", message: "The user interrupted the command." };
  if (exitCode === 0) return { outcome: "DONE" };
  const message =
    exitCode === undefined
      ? `The command was ended by ${signal || "a signal"}.`
      : `The command ended with exit code ${exitCode}.`;
  return {
    outcome: "FAILED",
    error: { code: "agent_process_failed", message, retryable: false, reason: "command_failed" },
  };
}

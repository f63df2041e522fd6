import type { WorkerEvent } from "./run-events.ts";
import type { JsonObject, Outcome } from "./run.ts";
import type { WorkerSession } from "./worker-session.ts";

/** Shown as the worker of what a client executes itself. */
export const LOCAL_HOST = "local";

/** A command that a client runs by itself, and the uid by which it names itself from then on. */
export type LocalStart = { readonly clientUid: string; readonly command: readonly string[] };

/** What a client tells of its command; `seq` counts 1, 2, 3 … */
export type LocalEvent = { readonly seq: number; readonly at: Date } & (
  | { readonly kind: "output"; readonly stream: "stdout" | "stderr"; readonly text: string }
  /** The command was handed this follow-up. */
  | { readonly kind: "followup"; readonly followupUid: string }
  | { readonly kind: "end"; readonly end: LocalEnd }
);

/** How a command ended; `output` is its beginning and its end. */
export type LocalEnd = {
  readonly exitCode?: number;
  readonly signal?: string;
  /** Its user stopped it. */
  readonly isInterrupted: boolean;
  readonly output: string;
  readonly isTruncated: boolean;
};

/** The client in the place of a worker's session. */
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

/** As the agent's side of the conversation: one step that runs one command. A follow-up in a sandbox goes on from it. */
export function beginning(
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

/** The client's first event comes after those of the beginning. */
const BEGUN = 4;
export const clientSeqOf = (seq: number): number => seq + BEGUN;
export const seqOf = (clientSeq: number): number => Math.max(0, clientSeq - BEGUN);

/** `texts`: of follow-ups, by uid. */
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
        : of("warning", { text: "The client told of a follow-up that this run was not sent." });
    case "end": {
      const { exitCode, signal, output, isTruncated } = event.end;
      const result = {
        ...(exitCode === undefined ? {} : { exit_code: exitCode }),
        ...(signal ? { signal } : {}),
        output,
        truncated: isTruncated,
      };
      return of("tool_end", { ...ACTION, state: exitCode === 0 ? "completed" : "failed", output: result });
    }
    default:
      return event satisfies never;
  }
}

/** What the end of its command makes of a run. */
export function outcomeOf({ exitCode, signal, isInterrupted }: LocalEnd): {
  readonly outcome: Outcome;
  readonly message?: string;
  readonly error?: { code: string; message: string; retryable: boolean; reason: string };
} {
  if (isInterrupted) return { outcome: "CANCELLED", message: "Stopped where it was started." };
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

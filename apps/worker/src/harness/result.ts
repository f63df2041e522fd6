import type { ExecutionResult } from "../executions/execution-context.ts";
import type { TurnEnd } from "../tools/tool.ts";

/** What the platform is told about an execution whose last turn ended like this. */
export function resultOf(end: TurnEnd): ExecutionResult {
  switch (end.kind) {
    case "done":
      return { outcome: "DONE", ...(end.message === undefined ? {} : { message: end.message }) };
    case "failed":
      return { outcome: PLATFORM_FAULTS.includes(end.failure.code) ? "ERROR" : "FAILED", error: end.failure };
    case "blocked":
      return { outcome: "BLOCKED", message: end.message };
    case "waiting":
      return { outcome: "WAITING", waitFor: { policy: end.policy, runUids: [] } };
    default: // interrupted, and nobody said how to go on
      return { outcome: "BLOCKED", message: WAITING_FOR_INPUT };
  }
}

/** Codes of the public catalog that are nobody's fault who uses the platform (fields-runs §2.2). */
const PLATFORM_FAULTS: readonly string[] = ["resource_unavailable", "agent_process_failed"];

export const WAITING_FOR_INPUT = "Waiting for input.";

import type { ExecutionResult } from "../context/execution-context.ts";
import type { TurnEnd } from "../tools/tool.ts";

/** Returns the result of an execution from the end of its last turn. */
export function resultOf(end: TurnEnd): ExecutionResult {
  switch (end.kind) {
    case "done":
      return { outcome: "DONE", message: end.message };
    case "failed":
      return { outcome: PLATFORM_FAULTS.includes(end.failure.code) ? "ERROR" : "FAILED", error: end.failure };
    case "blocked":
      return { outcome: "BLOCKED", message: end.message };
    case "waiting":
      return { outcome: "WAITING", waitFor: { policy: end.policy, runUids: [] } };
    default: // the turn was interrupted and no message arrived since
      return { outcome: "BLOCKED", message: WAITING_FOR_INPUT };
  }
}

/** Error codes of the public catalog that are faults of the platform, not of its users. */
const PLATFORM_FAULTS: readonly string[] = ["resource_unavailable", "agent_process_failed"];

export const WAITING_FOR_INPUT = "Waiting for input.";

/** The end of the run of a trial's attempt, as published by the orchestrator. */
export type RunEnd = { readonly state: string; readonly errorCode: string | null };

/**
 * The result of an attempt. `infrastructure`: the platform failed, so the attempt has no information about the agent.
 */
export type Ending = "succeeded" | "failure" | "timeout" | "cancelled" | "infrastructure";

/** Codes of runs in which the agent exceeded the time limit of a run. */
const TIMEOUT_CODES: ReadonlySet<string> = new Set(["infrastructure_timeout"]);

/**
 * Codes of runs in state ERROR for which the agent may be responsible: its process died, for example because it
 * exceeded its memory. If they counted as infrastructure failures, the failures of an agent that crashes would be
 * missing from its pass rate.
 */
const AGENT_CODES: ReadonlySet<string> = new Set(["agent_process_failed", "budget_exceeded"]);

/**
 * Codes of runs in state FAILED that no agent causes: capacity, the model provider, or an environment that failed
 * before the agent started.
 */
const INFRASTRUCTURE_CODES: ReadonlySet<string> = new Set([
  "resource_unavailable",
  "environment_setup_failed",
  "internal_error",
  "agent_stream_network_error",
]);

/**
 * Classifies the end of a trial's run. BLOCKED is a failure, because no person answers the questions of a trial. A run
 * in state ERROR is an infrastructure failure unless its code is one of the agent's, also if the code is unknown here.
 */
export function endingOf({ state, errorCode }: RunEnd): Ending {
  const code = errorCode ?? "";
  if (state === "SUCCEEDED") return "succeeded";
  if (state === "CANCELLED") return "cancelled";
  if (TIMEOUT_CODES.has(code)) return "timeout";
  if (state === "ERROR") return AGENT_CODES.has(code) ? "failure" : "infrastructure";
  return INFRASTRUCTURE_CODES.has(code) ? "infrastructure" : "failure";
}

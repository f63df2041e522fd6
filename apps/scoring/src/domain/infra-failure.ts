/** How the run of a trial's attempt ended, as its owner published it. */
export type RunEnd = { readonly state: string; readonly errorCode: string | null };

/** infrastructure: the platform failed, not the agent; such an attempt says nothing about the agent. */
export type Ending = "succeeded" | "failure" | "timeout" | "cancelled" | "infrastructure";

/** The agent took longer than a run may. */
const TIMEOUT_CODES: ReadonlySet<string> = new Set(["infrastructure_timeout"]);

/**
 * Codes of runs in state ERROR for which the agent may be responsible: its process died, for example because it used all of its memory. Counting
 * them as infrastructure would let an agent that crashes leave its failures out of its pass rate.
 */
const AGENT_CODES: ReadonlySet<string> = new Set(["agent_process_failed", "budget_exceeded"]);

/** Codes of runs in state FAILED that no agent causes: capacity, the model provider, and an environment that failed before the agent started. */
const INFRASTRUCTURE_CODES: ReadonlySet<string> = new Set([
  "resource_unavailable",
  "environment_setup_failed",
  "internal_error",
  "agent_stream_network_error",
]);

/**
 * Classifies the end of a trial's run. BLOCKED is a failure: nobody answers the questions of a trial. A run in state ERROR without a code of the
 * agent's is an infrastructure failure, also with a code that is not known here. Source: fields-runs §2.2.
 */
export function endingOf({ state, errorCode }: RunEnd): Ending {
  const code = errorCode ?? "";
  if (state === "SUCCEEDED") return "succeeded";
  if (state === "CANCELLED") return "cancelled";
  if (TIMEOUT_CODES.has(code)) return "timeout";
  if (state === "ERROR") return AGENT_CODES.has(code) ? "failure" : "infrastructure";
  return INFRASTRUCTURE_CODES.has(code) ? "infrastructure" : "failure";
}

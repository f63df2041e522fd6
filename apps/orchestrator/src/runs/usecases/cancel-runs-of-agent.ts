import { serviceCaller } from "@millwright/caller";
import { isDomainError, type DomainError } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import { cancelRun, type CancelRunDeps } from "./cancel-run.ts";

/** The kind and the payload of the background job. */
export const CANCEL_RUNS_OF_AGENT = "cancel_runs_of_agent";
export type RunsOfAgent = {
  readonly agent_uid: string;
  readonly team_uid: string;
  readonly actor: { readonly type: string; readonly uid: string };
};

export type CancelRunsOfAgentDeps = CancelRunDeps & { liveRunsOfAgent(agentUid: string): Promise<readonly string[]> };

/** Errors that are ignored: the run has ended concurrently, or is executed by its client. */
const IGNORED_REASONS: readonly string[] = ["run_already_finished", "run_not_cancellable", "run_not_found"];

/**
 * Cancels the active runs of a deleted agent. Safe to repeat.
 *
 * Errors: run_pending (conflict, retryable) if a run is being assigned to a worker; retry later.
 */
export async function cancelRunsOfAgent(
  deps: CancelRunsOfAgentDeps,
  { agent_uid: agentUid, team_uid: teamUid, actor }: RunsOfAgent,
): Promise<void> {
  const caller = serviceCaller("orchestrator", newUid(), { type: actor.type as "user", uid: actor.uid }, [
    { teamUid: teamUid as TeamUid, verbs: ["run.view", "run.manage"] },
  ]);
  let pending: DomainError | undefined;
  for (const runUid of await deps.liveRunsOfAgent(agentUid)) {
    await cancelRun(deps, caller, { runUid, tree: false, cause: agentUid }).catch((error: unknown) => {
      if (!isDomainError(error) || (error.reason !== "run_pending" && !IGNORED_REASONS.includes(error.reason)))
        throw error;
      if (error.reason === "run_pending") pending = error;
    });
  }
  if (pending) throw pending;
}

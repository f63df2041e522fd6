import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { RunScore } from "../domain/result.ts";
import type { ResultStore } from "../store/result-store.ts";

export type ListRunScoresDeps = {
  runs: {
    /** Checks that the caller can see the run. Errors: run_not_found (absent or not visible to the caller). */
    requireVisible(caller: Caller, runUid: string): Promise<void>;
  };
  results: Pick<ResultStore, "listOfRun">;
};

/**
 * Returns the current attempt of each scorer that attempted a run, newest first. Requires only the permission to view
 * the run. Errors: run_not_found.
 */
export async function listRunScores(deps: ListRunScoresDeps, caller: Caller, runUid: string): Promise<RunScore[]> {
  if (!isUuid(runUid)) throw notFound("run");
  await deps.runs.requireVisible(caller, runUid);
  return deps.results.listOfRun(runUid);
}

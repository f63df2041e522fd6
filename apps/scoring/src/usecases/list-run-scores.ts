import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { RunScore } from "../domain/result.ts";

export type ListRunScoresDeps = {
  runs: {
    /** Errors: run_not_found (absent or not visible to the caller). */
    requireVisible(caller: Caller, runUid: string): Promise<void>;
  };
  results: { listOfRun(runUid: string): Promise<RunScore[]> };
};

/** Lists the current attempt of each scorer that attempted a run, most recent first. Needs only the right to view the run. Errors: run_not_found. Source: fields-factory §8.6. */
export async function listRunScores(deps: ListRunScoresDeps, caller: Caller, runUid: string): Promise<RunScore[]> {
  if (!isUuid(runUid)) throw notFound("run");
  await deps.runs.requireVisible(caller, runUid);
  return deps.results.listOfRun(runUid);
}

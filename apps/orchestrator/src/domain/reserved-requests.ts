import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { NewRun } from "./new-run.ts";

const SCORING = "scoring";

/** Sources of the runs that the scoring service starts. */
const SCORING_SOURCES: readonly string[] = ["RUN_SCORER", "BENCHMARK_TRIAL", "SELF_IMPROVEMENT"];

/** Refuses judges, borrowed workspaces, pinned repositories, overrides of agents and sources of scoring to all callers but the scoring service. Errors: reserved_for_scoring (invalid_argument). */
export function requireNothingReserved({ principal }: Pick<Caller, "principal">, run: NewRun): void {
  if (principal.type === "service" && principal.uid === SCORING) return;
  const reserved = [
    ...(run.judge ? ["judge"] : []),
    ...(run.workspaceOfRunUid ? ["workspace_of_run_uid"] : []),
    ...(run.agentOverrides ? ["agent_overrides"] : []),
    ...(run.pinnedRepositories?.length ? ["pinned_repositories"] : []),
    ...(SCORING_SOURCES.includes(run.source) ? [`source ${run.source}`] : []),
  ];
  if (reserved.length > 0)
    throw invalidArgument(
      "reserved_for_scoring",
      `Only the scoring service may create runs with ${reserved.join(", ")}.`,
    );
}

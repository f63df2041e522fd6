import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { NewRun } from "./new-run.ts";

const SCORING = "scoring";

/** Sources of runs that the scoring service creates. */
const SCORING_SOURCES: readonly string[] = ["RUN_SCORER", "BENCHMARK_TRIAL", "SELF_IMPROVEMENT"];

/**
 * Throws `reserved_for_scoring` (invalid_argument) if a caller other than the scoring service sets a judge, a borrowed
 * workspace, pinned repositories, agent overrides, or a source of scoring.
 */
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

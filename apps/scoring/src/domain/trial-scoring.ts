import { as } from "@millwright/ids";
import type { ConfigOverrides, JudgeSource } from "./attempt-config.ts";
import type { Manifest } from "./manifest.ts";
import type { Rule } from "./rule.ts";
import type { ScorerUid } from "./scorer.ts";

/**
 * Returns the configuration of a trial's judge: the scorer as frozen at launch. Correctness is judged by the success
 * criteria of the task, or by its rule. Throws an Error if the manifest lacks the scorer or the task.
 */
export function scoringOf(
  { content, identifiers }: Manifest,
  taskUid: string,
  scorerUid: string,
): ConfigOverrides & { readonly scorer: JudgeSource } {
  const index = identifiers.scorers.findIndex(({ uid }) => uid === scorerUid);
  const frozen = content.scorers[index];
  const task = content.tasks[identifiers.tasks.findIndex(({ uid }) => uid === taskUid)];
  if (!frozen || !task) throw new Error(`The manifest lacks scorer ${scorerUid} or task ${taskUid}.`);
  const scorer: JudgeSource = {
    uid: as<ScorerUid>(scorerUid),
    version: identifiers.scorers[index]!.version,
    labels: frozen.labels,
    threshold: frozen.threshold,
    scoringPrompt: frozen.scoring_prompt,
    modelId: frozen.model_id,
    rule: frozen.rule,
    agentConfig: frozen.agent_config,
  };
  if (frozen.kind !== "benchmark_task_correctness") return { scorer };
  return { scorer, rubric: task.success_criteria, rule: (task.rule ?? undefined) as Rule | undefined };
}

import { omitUndefined, type JsonObject } from "@millwright/json";
import type { Attempt } from "./attempt.ts";
import { JUDGE_SOURCE } from "./eligibility.ts";
import { evidenceFiles, type EvidenceFile, type RunEvidence } from "./judge-evidence.ts";
import { judgePrompt } from "./judge-prompt.ts";
import type { Rule } from "./rule.ts";
import { workspaceScript } from "./workspace-checks.ts";

/** A run that is created for scoring. */
export type JudgeRun = {
  readonly title: string;
  readonly prompt: string;
  readonly teamUid: string;
  readonly factoryUid: string;
  readonly source: string;
  /** Idempotency key without expiry: at most one run per cause is created. */
  readonly causeKey: string;
  readonly config: JsonObject;
  readonly files: readonly EvidenceFile[];
  readonly judge?: { readonly scorerUid: string; readonly classifications: readonly string[] };
  readonly workspaceOfRunUid?: string;
  readonly agentUid?: string;
  readonly metadata?: Readonly<Record<string, string>>;
};

/**
 * Metadata key with the attempt of a judge run, for reports that arrive before the run is recorded. Only this service
 * creates runs with the source of judges.
 */
export const ATTEMPT_METADATA = "scoring_attempt";

const CAUSE = "attempt:";
/** Maximum number of steps of a judge, which reads four files and reports. */
const STEP_LIMIT = 60;
const COST_LIMIT_USD = 2;

export const causeKeyOf = (attemptUid: string): string => `${CAUSE}${attemptUid}`;

/** Returns the attempt that a run was created for, or undefined if there is none. */
export const attemptOfCause = (cause: string): string | undefined =>
  cause.startsWith(CAUSE) ? cause.slice(CAUSE.length) : undefined;

/** Returns the run in which a model judges the evidence. */
export function modelJudgeRun(
  attempt: Attempt,
  scorerName: string,
  evidence: RunEvidence,
  defaults: JsonObject,
): JudgeRun {
  const { config, scorerUid } = attempt;
  return {
    ...common(attempt, scorerName),
    prompt: judgePrompt(config),
    config: {
      ...overrides(config.agent_config as JsonObject | null, defaults),
      model_id: config.model_id,
      step_limit: STEP_LIMIT,
      cost_limit_usd: COST_LIMIT_USD,
    },
    files: evidenceFiles(evidence),
    judge: { scorerUid, classifications: config.labels.map(({ value }) => value) },
  };
}

/**
 * Returns the run that executes a rule's commands on the final workspace of the evaluated run. It gets no secrets and
 * no MCP servers.
 */
export function workspaceJudgeRun(attempt: Attempt, scorerName: string, rule: Rule, defaults: JsonObject): JudgeRun {
  const { runner_id: runnerId } = overrides(attempt.config.agent_config as JsonObject | null, defaults);
  return {
    ...common(attempt, scorerName),
    prompt: workspaceScript(rule),
    config: { model_id: "scripted", ...omitUndefined({ runner_id: runnerId }) },
    files: [],
    judge: { scorerUid: attempt.scorerUid, classifications: [] },
    workspaceOfRunUid: attempt.runUid,
  };
}

const common = (attempt: Attempt, scorerName: string) => ({
  title: `Score: ${scorerName} on ${attempt.title}`,
  teamUid: attempt.teamUid,
  factoryUid: attempt.factoryUid,
  source: JUDGE_SOURCE,
  causeKey: causeKeyOf(attempt.uid),
  metadata: { [ATTEMPT_METADATA]: attempt.uid },
});

/**
 * Returns the scorer's own values merged over the factory's. Null and absent values inherit; an empty collection
 * clears.
 */
function overrides(own: JsonObject | null, defaults: JsonObject): JsonObject {
  const value = (name: string) => own?.[name] ?? defaults[name];
  const [runner, mcpServers, secrets] = [value("default_runner_uid"), value("mcp_servers"), value("secrets")];
  return omitUndefined({ runner_id: runner === "" ? undefined : runner, mcp_servers: mcpServers, secrets });
}

import { invalidArgument, type DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { checkRule } from "./check-rule.ts";
import {
  RULE_MODEL,
  SCOPE_MODES,
  type JsonObject,
  type Label,
  type ScopeAgent,
  type ScorerSettings,
} from "./scorer.ts";

/** Limits in characters, entries and bytes. */
export const SCORER_LIMITS = {
  name: 200,
  description: 2_000,
  promptBytes: 65_536,
  labelsMin: 2,
  labels: 50,
  label: 100,
  labelDescription: 500,
  agents: 100,
  model: 200,
  configBytes: 65_536,
} as const;

/** Settings as requested by the caller. */
export type GivenSettings = Omit<ScorerSettings, "scopeMode" | "rule" | "samplingRate"> & {
  readonly scopeMode: string;
  readonly rule: JsonObject | null;
  /** Null selects 100. */
  readonly samplingRate: number | null;
};

/** Names of the settings that a change replaces; see `mergeSettings`. */
export type SettingName = keyof ScorerSettings;

/** Returns the error for an invalid value of a scorer. Its metadata has the top-level member. */
export const scorerInvalid = (path: string, message: string): DomainError =>
  invalidArgument("scorer_invalid", message, { field: path.split(".")[0]! });

/**
 * Validates settings. Returns them with texts trimmed and the sampling rate rounded to two decimals.
 *
 * Errors: scorer_invalid (invalid_argument, with the member).
 */
export function checkSettings(given: GivenSettings): ScorerSettings {
  const threshold = checkUnit("threshold", given.threshold);
  const labels = checkLabels(given.labels, threshold);
  const modelId = checkText("model_id", given.modelId, SCORER_LIMITS.model);
  if ((modelId === RULE_MODEL) !== (given.rule !== null)) {
    throw scorerInvalid(
      "model_id",
      `model_id must be "${RULE_MODEL}" when a rule judges, and only then; without a rule name a model.`,
    );
  }
  return {
    name: checkText("name", given.name, SCORER_LIMITS.name),
    description: checkOptionalText("description", given.description, SCORER_LIMITS.description),
    ...checkScope(given),
    labels,
    threshold,
    scoringPrompt: checkPrompt(given),
    modelId,
    samplingRate: checkRate(given.samplingRate),
    agentConfig: checkAgentConfig(given.agentConfig),
    rule:
      given.rule &&
      checkRule(
        given.rule,
        labels.map(({ value }) => value),
      ),
    selfImprovementEnabled: given.selfImprovementEnabled,
  };
}

/**
 * Returns the settings of a scorer with the named ones replaced. Naming the mode replaces the whole scope; naming only
 * the agents retains the mode.
 */
export function mergeSettings(
  before: ScorerSettings,
  given: GivenSettings,
  named: ReadonlySet<SettingName>,
): GivenSettings {
  const picked = Object.fromEntries([...named].map((name) => [name, given[name]]));
  const scope = named.has("scopeMode") && !named.has("agents") ? { agents: [] } : {};
  return { ...before, ...scope, ...picked };
}

function checkScope({ scopeMode, agents }: GivenSettings): Pick<ScorerSettings, "scopeMode" | "agents"> {
  const mode = SCOPE_MODES.find((known) => known === scopeMode);
  if (!mode)
    throw scorerInvalid(
      "scope_mode",
      `scope_mode must be ${SCOPE_MODES.join(" or ")} (got ${JSON.stringify(scopeMode)}).`,
    );
  if (mode === "all_agents" && agents.length > 0)
    throw scorerInvalid("agents", `agents must be empty when scope_mode is all_agents (got ${agents.length}).`);
  if (mode === "selected_agents" && agents.length === 0)
    throw scorerInvalid("agents", "agents must name at least one agent when scope_mode is selected_agents.");
  if (agents.length > SCORER_LIMITS.agents)
    throw scorerInvalid("agents", `agents must name at most ${SCORER_LIMITS.agents} agents (got ${agents.length}).`);
  const seen = new Set<string>();
  const checked = agents.map(({ agentUid, includeDescendants }): ScopeAgent => {
    const uid = agentUid.toLowerCase();
    if (!isUuid(uid)) throw scorerInvalid("agents", `agents must be UUIDs (got ${JSON.stringify(agentUid)}).`);
    if (seen.has(uid)) throw scorerInvalid("agents", `agents names ${uid} twice.`);
    seen.add(uid);
    return { agentUid: uid, includeDescendants };
  });
  return { scopeMode: mode, agents: checked };
}

function checkLabels(labels: readonly Label[], threshold: number): Label[] {
  const field = "allowed_classifications";
  const { labelsMin, labels: max } = SCORER_LIMITS;
  if (labels.length < labelsMin || labels.length > max)
    throw scorerInvalid(field, `${field} must have ${labelsMin} to ${max} labels (got ${labels.length}).`);
  const seen = new Set<string>();
  const checked = labels.map(({ value, score, description }): Label => {
    if (value !== value.trim())
      throw scorerInvalid(field, `The label ${JSON.stringify(value)} must not begin or end with a space.`);
    checkText(`${field}.value`, value, SCORER_LIMITS.label);
    if (seen.has(value)) throw scorerInvalid(field, `The label ${JSON.stringify(value)} is listed twice.`);
    seen.add(value);
    checkUnit(`${field}.score`, score);
    if (description !== undefined)
      checkOptionalText(`${field}.description`, description, SCORER_LIMITS.labelDescription);
    return { value, score, description };
  });
  const passing = checked.filter(({ score }) => score >= threshold).length;
  if (passing === 0 || passing === checked.length) {
    const message = `At least one label must have a score of at least the threshold (${threshold}), and at least one a lower score; ${passing} of ${checked.length} reach it.`;
    throw scorerInvalid(field, message);
  }
  return checked;
}

function checkText(field: string, text: string, max: number): string {
  const trimmed = text.trim();
  if (trimmed === "") throw scorerInvalid(field, `${field} is required.`);
  return checkOptionalText(field, trimmed, max);
}

function checkOptionalText(field: string, text: string, max: number): string {
  const trimmed = text.trim();
  if (trimmed.length > max)
    throw scorerInvalid(field, `${field} must have at most ${max} characters (got ${trimmed.length}).`);
  return trimmed;
}

/** Checks the rubric, which is optional if a rule judges. */
function checkPrompt({ scoringPrompt, rule }: GivenSettings): string {
  const prompt = scoringPrompt.trim();
  const bytes = Buffer.byteLength(prompt);
  if (prompt === "" && rule === null)
    throw scorerInvalid("scoring_prompt", "scoring_prompt is required when a model judges.");
  if (bytes > SCORER_LIMITS.promptBytes)
    throw scorerInvalid(
      "scoring_prompt",
      `scoring_prompt must have at most ${SCORER_LIMITS.promptBytes} bytes (got ${bytes}).`,
    );
  return prompt;
}

function checkUnit(field: string, value: number): number {
  if (!(value >= 0 && value <= 1)) throw scorerInvalid(field, `${field} must be from 0 to 1 (got ${value}).`);
  return value;
}

/** Rounds half up to two decimals. The epsilon prevents 1.005 from being rounded to 1.00. */
function checkRate(rate: number | null): number {
  if (rate === null) return 100;
  if (!(rate >= 0 && rate <= 100))
    throw scorerInvalid("sampling_rate", `sampling_rate must be from 0 to 100 (got ${rate}).`);
  return Math.round((rate + Number.EPSILON) * 100) / 100;
}

/**
 * Checks the configuration of judges. Absent and null members inherit from the factory; empty collections clear.
 * Unknown members are ignored.
 */
function checkAgentConfig(given: JsonObject | null): JsonObject | null {
  if (given === null) return null;
  const { default_runner_uid: runner, mcp_servers: servers, secrets } = given;
  const field = "agent_config";
  if (runner != null && (typeof runner !== "string" || !isUuid(runner)))
    throw scorerInvalid(field, "agent_config.default_runner_uid must be a UUID.");
  if (servers != null && (typeof servers !== "object" || Array.isArray(servers)))
    throw scorerInvalid(field, "agent_config.mcp_servers must be an object of servers by name.");
  if (secrets != null && (!Array.isArray(secrets) || !secrets.every(isSecretRef)))
    throw scorerInvalid(field, "agent_config.secrets must be a list of secrets, each with a name.");
  const config = Object.fromEntries(
    Object.entries({ default_runner_uid: runner, mcp_servers: servers, secrets }).filter(([, value]) => value != null),
  );
  const bytes = Buffer.byteLength(JSON.stringify(config));
  if (bytes > SCORER_LIMITS.configBytes)
    throw scorerInvalid(
      field,
      `agent_config must have at most ${SCORER_LIMITS.configBytes} bytes as JSON (got ${bytes}).`,
    );
  return Object.keys(config).length > 0 ? config : null;
}

const isSecretRef = (secret: unknown): boolean =>
  typeof secret === "string"
    ? secret !== ""
    : secret !== null && typeof secret === "object" && typeof (secret as { name?: unknown }).name === "string";

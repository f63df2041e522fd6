import { z } from "zod";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { McpServers } from "../runs/mcp-schemas.ts";

const ScopeMode = z.enum(["all_agents", "selected_agents"]).meta({ id: "ScorerScopeMode" });
const score = () => z.number().min(0).max(1);

const Label = z
  .object({
    value: z.string().trim().min(1).max(100).meta({ description: "Unique within the scorer." }),
    score: score(),
    description: z.string().max(500).optional(),
  })
  .meta({ id: "ScorerLabel" });

const JudgeConfig = z
  .object({
    default_runner_uid: z.string().nullable(),
    mcp_servers: McpServers.nullable(),
    secrets: z.array(z.object({ name: z.string().min(1) })).nullable(),
  })
  .partial()
  .meta({
    id: "ScorerAgentConfig",
    description:
      "Overrides for judge runs. A member that is null or absent is inherited from the factory; an empty collection clears it.",
  });

export const Rule = z
  .looseObject({
    checks: z
      .array(z.looseObject({ kind: z.enum(["regex", "json_path", "file", "command", "metric", "state"]) }))
      .min(1)
      .max(20),
    pass: z.string().min(1).meta({ description: "The label when every check passes." }),
    fail: z.string().min(1).meta({ description: "The label otherwise." }),
  })
  .meta({
    id: "ScorerRule",
    ...EXTENSION,
    description:
      "A deterministic judge instead of a model. Members of a check by `kind`: " +
      "`regex`: `target` (`final_message`, `conversation`, `diff`), `pattern`, `flags`, `negate`. " +
      "`json_path`: `target` (`final_message`, `file`), `file`, `path`, `equals`, `exists`. " +
      "`file`: `path`, `exists`, `contains`. `command`: `command`, `exit_code` (default 0), `timeout_seconds`. " +
      "`metric`: `metric` (`cost_usd`, `total_tokens`, `run_time_seconds`), `min`, `max`. `state`: `in` (a list of run states).",
  });

const RULE = "A rule that decides instead of a model. null: a model judges.";
const SAMPLING =
  "Percent of eligible runs that are scored automatically, rounded to two decimals. 0: no automatic scoring. null: 100.";
const AGENT_UIDS = "Shorthand for `agents` without descendants; send one of the two.";

const ScopeAgent = z
  .object({ uid: z.string(), name: z.string().optional(), include_descendants: z.boolean() })
  .meta({ id: "ScorerAgent" });

/** A scorer. `rule` is a Millwright extension. */
export const Scorer = z
  .object({
    uid: z.string(),
    id: z.int().meta({ description: "Legacy numeric id." }),
    factory_uid: z.string(),
    name: z.string(),
    description: z.string(),
    scorer_kind: z.enum(["user", "benchmark_task_correctness"]),
    scope_mode: ScopeMode,
    agent_uids: z.array(z.string()),
    agents: z.array(ScopeAgent).meta({ description: "Empty for all_agents." }),
    allowed_classifications: z.array(Label),
    threshold: score().meta({ description: "A label passes when its score is at least this." }),
    scoring_prompt: z.string(),
    model_id: z.string().meta({ description: "The model of the judge, or `rule` if a rule decides." }),
    sampling_rate: z.number().min(0).max(100),
    agent_config: JudgeConfig,
    rule: Rule.nullable().meta({ ...EXTENSION, description: RULE }),
    self_improvement_enabled: z.boolean(),
    version: z.int().meta({ description: "Starts at 1; every update adds 1." }),
    created_at: timestamp(),
    updated_at: timestamp(),
  })
  .meta({ id: "Scorer" });

/** A scorer in lists, with statistics. */
export const ListedScorer = Scorer.extend({
  result_count: z.int().meta({ description: "Live scores of all time." }),
  last_scored_at: timestamp().nullable(),
  pass_rate_summary: z
    .object({
      pass_count: z.int(),
      fail_count: z.int(),
      pass_rate: z.number().nullable(),
      recent_outcomes: z.array(z.enum(["pass", "fail"])).meta({ description: "Oldest first." }),
    })
    .meta({ description: "Over the most recent `recent_outcomes_limit` live scores." }),
}).meta({ id: "ListedScorer" });

const agents = z.array(z.object({ uid: z.string().min(1), include_descendants: z.boolean().default(false) })).max(100);
const agentUids = z.array(z.string().min(1)).max(100).meta({ description: AGENT_UIDS });

const settings = {
  name: z.string().trim().min(1).max(200),
  description: z.string().max(2000).nullable(),
  scope_mode: ScopeMode,
  agents,
  agent_uids: agentUids,
  allowed_classifications: z.array(Label).min(2).max(50),
  threshold: score(),
  scoring_prompt: z.string().trim().min(1),
  model_id: z.string().trim().min(1),
  sampling_rate: z.number().min(0).max(100).nullable().meta({ description: SAMPLING }),
  agent_config: JudgeConfig.nullable().meta({ description: "null: every member is inherited." }),
  rule: Rule.nullable().meta({ ...EXTENSION, description: RULE }),
  self_improvement_enabled: z.boolean(),
};

type Scope = { agents?: unknown; agent_uids?: unknown };
const isOneScope = ({ agents: full, agent_uids: short }: Scope): boolean => full === undefined || short === undefined;
const ONE_SCOPE = "Send agents or agent_uids, not both.";

export const NewScorer = z
  .object({
    ...z.object(settings).partial().shape,
    name: settings.name,
    scope_mode: settings.scope_mode,
    allowed_classifications: settings.allowed_classifications,
    threshold: settings.threshold,
    scoring_prompt: settings.scoring_prompt
      .optional()
      .meta({ description: "The rubric. Required unless a rule judges." }),
    model_id: settings.model_id
      .optional()
      .meta({ description: "The model that judges. Required unless a rule judges." }),
  })
  .refine(isOneScope, ONE_SCOPE)
  .meta({ id: "CreateScorerRequest" });

export const ScorerPatch = z
  .object(settings)
  .partial()
  .refine(isOneScope, ONE_SCOPE)
  .meta({ id: "UpdateScorerRequest" });

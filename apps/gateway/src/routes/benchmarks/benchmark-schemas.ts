import { z } from "zod";
import { EXTENSION, recordOf, timestamp, UserProfile } from "../../rest/index.ts";
import { Rule } from "../scorers/scorer-schemas.ts";

const RULE = "A rule that decides correctness instead of a model. null: a model judges by the success criteria.";
const OWN = 'Absent or "": the agent\'s own.';
const REF = "Commit, branch or tag; absent: the default branch. Pinned to a commit at launch.";

const StartingRepoRef = z
  .object({
    code_forge: z.string().meta({ description: "`github`, `gitlab` or `local`." }),
    owner: z.string(),
    repo: z.string(),
    ref: z.string().optional().meta({ description: REF }),
  })
  .meta({ id: "StartingRepoRef" });

const labels = recordOf(z.string(), z.string());

/** A task of a suite. `rule` is a Millwright extension. */
export const SuiteTask = z
  .object({
    uid: z.string(),
    id: z.int().meta({ description: "Deprecated numeric id." }),
    title: z.string(),
    prompt: z.string(),
    success_criteria: z.string().meta({ description: "Criteria of the correctness scorer. Not visible to trials." }),
    source_run_id: z.string().nullable(),
    starting_repo_refs: z.array(StartingRepoRef),
    tags: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
    rule: Rule.nullable().meta({ ...EXTENSION, description: RULE }),
  })
  .meta({ id: "SuiteTask" });

/** A task drafted from a run, which is not stored. Millwright extension. */
export const TaskDraft = SuiteTask.pick({
  title: true,
  prompt: true,
  source_run_id: true,
  starting_repo_refs: true,
  tags: true,
  labels: true,
}).meta({ id: "SuiteTaskDraft" });

const taskContent = {
  title: z.string().trim().min(1),
  prompt: z.string().trim().min(1),
  success_criteria: z.string().trim().min(1),
  source_run_id: z
    .string()
    .min(1)
    .nullable()
    .optional()
    .meta({ description: "Requires run.view for the run. null: none." }),
  starting_repo_refs: z.array(StartingRepoRef).optional(),
  tags: z.array(z.string()).optional(),
  labels: labels.optional(),
  rule: Rule.nullable()
    .optional()
    .meta({ ...EXTENSION, description: RULE }),
};

export const NewSuiteTask = z.object(taskContent).meta({ id: "CreateSuiteTaskRequest" });
export const SuiteTaskPatch = z.object(taskContent).partial().meta({ id: "UpdateSuiteTaskRequest" });

const AgentOverride = z
  .object({
    agent_uid: z.string(),
    harness: z.string(),
    model: z.string(),
    agent_name: z.string().optional(),
    harness_auth_secret_name: z.string().nullable().optional(),
  })
  .meta({ id: "BenchmarkAgentConfig" });

export const Configuration = z
  .object({
    uid: z.string(),
    id: z.int().meta({ description: "Legacy numeric id." }),
    role: z.enum(["baseline", "candidate"]),
    display_name: z.string(),
    harness: z.string().optional().meta({ description: OWN }),
    model: z.string().optional().meta({ description: OWN }),
    runner_id: z.string().optional().meta({ description: OWN }),
    harness_auth_secret_name: z.string().nullable().optional(),
    agent_configs: z
      .array(AgentOverride)
      .meta({ description: "Overrides per agent; on a benchmark run, every agent." }),
  })
  .meta({ id: "BenchmarkConfiguration" });

export const NewConfiguration = z
  .object({
    uid: z.string().min(1).optional().meta({
      description:
        "Uid of an existing configuration of the suite, which keeps its identity. Any other uid is rejected.",
    }),
    role: z.enum(["baseline", "candidate"]).meta({ description: "At most one configuration is the baseline." }),
    display_name: z.string().optional(),
    harness: z.string().nullable().optional().meta({ description: OWN }),
    model: z.string().nullable().optional().meta({ description: OWN }),
    runner_id: z.string().nullable().optional().meta({ description: OWN }),
    harness_auth_secret_name: z.string().nullable().optional(),
    agent_configs: z
      .array(AgentOverride.extend({ harness: z.string().default(""), model: z.string().default("") }))
      .optional(),
  })
  .meta({ id: "NewBenchmarkConfiguration" });

export const Suite = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    name: z.string(),
    description: z.string().optional(),
    agent_uid: z.string().meta({ description: "The agent that every task runs as." }),
    factory_agent_type: z.string().meta({ description: "The agent's name in the factory." }),
    configurations: z
      .array(Configuration)
      .optional()
      .meta({ description: "Configurations of launches that name none." }),
    creator: UserProfile.optional(),
    version: z.int().meta({ description: "Increments with every change of the suite or its tasks." }),
    created_at: timestamp(),
    updated_at: timestamp(),
  })
  .meta({ id: "BenchmarkSuite" });

export const SuiteWithTasks = Suite.extend({
  tasks: z.array(SuiteTask),
  spawnable_descendant_agent_uids: z
    .array(z.string())
    .meta({ description: "Agents that the suite's agent can delegate to, sorted." }),
}).meta({ id: "BenchmarkSuiteWithTasks" });

const suiteContent = {
  name: z.string().trim().min(1),
  description: z.string().nullable().optional(),
  agent_uid: z.string().min(1),
  factory_agent_type: z.string().trim().min(1).meta({ description: "Must be the name of the agent in agent_uid." }),
  configurations: z.array(NewConfiguration).optional(),
};

export const NewSuite = z
  .object({
    ...suiteContent,
    uid: z.string().min(1).optional().meta({
      description:
        "A UUID chosen by the client. Repeating the request returns the existing suite with 200; different content is a 409.",
    }),
    tasks: z.array(NewSuiteTask).optional(),
  })
  .meta({ id: "CreateBenchmarkSuiteRequest" });

export const SuitePatch = z
  .object({
    ...suiteContent,
    tasks: z
      .array(
        NewSuiteTask.extend({
          uid: z.string().min(1).optional().meta({ description: "Uid of an existing task, which keeps its identity." }),
        }),
      )
      .meta({ description: "Replaces all tasks." }),
  })
  .partial()
  .meta({ id: "UpdateBenchmarkSuiteRequest" });

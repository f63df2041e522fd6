import { as } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type {
  Configuration,
  RepoRef,
  Suite,
  SuiteTask,
  SuiteTaskUid,
  SuiteUid,
  SuiteWithTasks,
} from "../domain/suite.ts";

export const SUITE_COLUMNS = `s.uid, s.factory_uid, s.team_uid, s.slug, s.name, s.description, s.agent_uid, s.factory_agent_type, s.configurations, s.version,
  s.creator_type, s.creator_uid, s.created_at, s.updated_at`;

/**
 * SQL for the tasks of the suite `s`, in order. One statement reads a suite and its tasks, so that they have the same
 * version.
 */
export const SUITE_TASKS_COLUMN = `coalesce((
    SELECT jsonb_agg(jsonb_build_object('uid', t.uid, 'id', t.id, 'slug', t.slug, 'title', t.title, 'prompt', t.prompt, 'success_criteria', t.success_criteria,
             'source_run_uid', t.source_run_uid, 'starting_repo_refs', t.starting_repo_refs, 'tags', t.tags, 'labels', t.labels, 'rule', t.rule) ORDER BY t.position)
      FROM suite_tasks t WHERE t.suite_uid = s.uid), '[]') AS tasks`;

export type TaskRow = {
  uid: string;
  id: number;
  slug: string | null;
  title: string;
  prompt: string;
  success_criteria: string;
  source_run_uid: string | null;
  starting_repo_refs: RepoRef[];
  tags: string[];
  labels: Record<string, string>;
  rule: JsonObject | null;
};

export type SuiteRow = {
  uid: string;
  factory_uid: string;
  team_uid: string;
  slug: string | null;
  name: string;
  description: string | null;
  agent_uid: string;
  factory_agent_type: string;
  configurations: Configuration[];
  version: number;
  creator_type: string;
  creator_uid: string;
  created_at: Date;
  updated_at: Date;
};

export type SuiteWithTasksRow = SuiteRow & { tasks: TaskRow[] };

export const toSuite = (row: SuiteRow): Suite => ({
  uid: as<SuiteUid>(row.uid),
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  slug: row.slug,
  name: row.name,
  description: row.description,
  agentUid: row.agent_uid,
  factoryAgentType: row.factory_agent_type,
  configurations: row.configurations,
  version: row.version,
  creator: { type: row.creator_type, uid: row.creator_uid },
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export const toSuiteWithTasks = (row: SuiteWithTasksRow): SuiteWithTasks => ({
  ...toSuite(row),
  tasks: row.tasks.map(toTask),
});

const toTask = (row: TaskRow): SuiteTask => ({
  uid: as<SuiteTaskUid>(row.uid),
  id: row.id,
  slug: row.slug,
  title: row.title,
  prompt: row.prompt,
  successCriteria: row.success_criteria,
  sourceRunUid: row.source_run_uid,
  startingRepoRefs: row.starting_repo_refs,
  tags: row.tags,
  labels: row.labels,
  rule: row.rule,
});

/** Returns a task in the form that `UPSERT_TASKS` reads with `jsonb_to_recordset`. */
export const taskJson = (task: SuiteTask, position: number): JsonObject => ({
  uid: task.uid,
  position,
  slug: task.slug,
  title: task.title,
  prompt: task.prompt,
  success_criteria: task.successCriteria,
  source_run_uid: task.sourceRunUid,
  starting_repo_refs: task.startingRepoRefs.map((ref) => ({ ...ref })),
  tags: [...task.tags],
  labels: task.labels,
  rule: task.rule,
});

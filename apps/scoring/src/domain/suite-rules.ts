import { titlesFault } from "@millwright/definition";
import { invalidArgument, type DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { canonicalJson, type JsonObject } from "@millwright/json";
import { checkTaskRule } from "./task-rule.ts";
import type { RepoRef, SuiteSettings, TaskContent } from "./suite.ts";

/** Limits of this platform, in characters of texts and entries of lists. */
export const SUITE_LIMITS = {
  name: 200,
  description: 10_000,
  text: 4_000_000,
  tasks: 1_000,
  configurations: 20,
  overrides: 100,
  field: 200,
  title: 500,
  prompt: 200_000,
  criteria: 50_000,
  tags: 50,
  tag: 100,
  labels: 50,
  label: 500,
  refs: 20,
} as const;

const CODE_FORGES: readonly string[] = ["github", "gitlab", "local"];
const PATH_PART = /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;
const REF = /^[^\s~^:?*[\\]+$/;
const COMMIT = /^[0-9a-f]{40}$/i;

/** Returns whether a ref is a full commit id, which need not be resolved. */
export const isCommit = (ref: string): boolean => COMMIT.test(ref);

/** Returns the error for an invalid field of a suite or task. */
export const suiteInvalid = (field: string, message: string): DomainError =>
  invalidArgument("suite_invalid", message, { field });

/** Returns the trimmed text. Errors: suite_invalid if it is blank or too long. */
function requiredText(field: string, text: string, max: number): string {
  const trimmed = text.trim();
  if (trimmed === "") throw suiteInvalid(field, `${field} is required and must not be blank.`);
  return limitedText(field, trimmed, max);
}

function limitedText(field: string, text: string, max: number): string {
  if (text.length > max)
    throw suiteInvalid(field, `${field} must have at most ${max} characters (got ${text.length}).`);
  return text;
}

function limitedList<T>(field: string, list: readonly T[], max: number): readonly T[] {
  if (list.length > max) throw suiteInvalid(field, `${field} must have at most ${max} entries (got ${list.length}).`);
  return list;
}

/** Checks and trims the settings of a suite except its configurations. Errors: suite_invalid. */
export function checkSuite<T extends Pick<SuiteSettings, "name" | "description" | "agentUid">>(given: T): T {
  const description = limitedText("description", given.description?.trim() ?? "", SUITE_LIMITS.description) || null;
  return {
    ...given,
    name: requiredText("name", given.name, SUITE_LIMITS.name),
    description,
    agentUid: checkAgentUid(given.agentUid),
  };
}

/** Checks a uid and returns it in lower case. Errors: suite_invalid. */
export function checkAgentUid(agentUid: string): string {
  if (!isUuid(agentUid))
    throw suiteInvalid(
      "agent_uid",
      `agent_uid is required and must be a UUID (got ${JSON.stringify(agentUid.slice(0, 100))}).`,
    );
  return agentUid.toLowerCase();
}

/** Checks and trims a task. Errors: suite_invalid. */
export function checkTask(given: TaskContent): TaskContent {
  const { sourceRunUid } = given;
  if (sourceRunUid !== null && !isUuid(sourceRunUid))
    throw suiteInvalid(
      "source_run_id",
      `source_run_id must be a UUID (got ${JSON.stringify(sourceRunUid.slice(0, 100))}).`,
    );
  const labels = Object.entries(given.labels).map(
    ([key, value]) =>
      [requiredText("labels", key, SUITE_LIMITS.tag), limitedText("labels", value.trim(), SUITE_LIMITS.label)] as const,
  );
  return {
    title: requiredText("title", given.title, SUITE_LIMITS.title),
    prompt: requiredText("prompt", given.prompt, SUITE_LIMITS.prompt),
    successCriteria: requiredText("success_criteria", given.successCriteria, SUITE_LIMITS.criteria),
    sourceRunUid: sourceRunUid?.toLowerCase() ?? null,
    startingRepoRefs: checkRefs(given.startingRepoRefs),
    tags: checkTags(given.tags),
    labels: Object.fromEntries(limitedList("labels", labels, SUITE_LIMITS.labels)),
    rule: given.rule && checkTaskRule(given.rule),
  };
}

function checkRefs(given: readonly RepoRef[]): RepoRef[] {
  const refs = limitedList("starting_repo_refs", given, SUITE_LIMITS.refs).map((entry): RepoRef => {
    const [codeForge, owner, repo, ref] = [
      entry.code_forge.trim().toLowerCase(),
      entry.owner.trim(),
      entry.repo.trim(),
      entry.ref.trim(),
    ];
    if (!CODE_FORGES.includes(codeForge)) {
      throw suiteInvalid(
        "starting_repo_refs",
        `code_forge must be one of ${CODE_FORGES.join(", ")} (got ${JSON.stringify(entry.code_forge)}).`,
      );
    }
    if (!PATH_PART.test(owner) || !PATH_PART.test(repo)) {
      throw suiteInvalid(
        "starting_repo_refs",
        `${JSON.stringify(`${owner}/${repo}`)} is not a repository in the form owner/repo.`,
      );
    }
    if (ref !== "" && (!REF.test(ref) || ref.startsWith("-") || ref.length > SUITE_LIMITS.field)) {
      throw suiteInvalid("starting_repo_refs", `${JSON.stringify(ref)} is not a commit, branch or tag.`);
    }
    return { code_forge: codeForge, owner, repo, ref: isCommit(ref) ? ref.toLowerCase() : ref };
  });
  const names = refs.map(({ owner, repo }) => `${owner}/${repo}`.toLowerCase());
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw suiteInvalid("starting_repo_refs", `The repository ${repeated} is listed twice.`);
  return refs;
}

const checkTags = (given: readonly string[]): string[] => [
  ...new Set(limitedList("tags", given, SUITE_LIMITS.tags).map((tag) => requiredText("tags", tag, SUITE_LIMITS.tag))),
];

/**
 * Checks the number of tasks of a suite, the total length of their texts, and that titles are unique. Errors:
 * suite_invalid.
 */
export function checkTasks(tasks: readonly TaskContent[]): void {
  limitedList("tasks", tasks, SUITE_LIMITS.tasks);
  const characters = tasks.reduce(
    (sum, { prompt, successCriteria }) => sum + prompt.length + successCriteria.length,
    0,
  );
  if (characters > SUITE_LIMITS.text)
    throw suiteInvalid(
      "tasks",
      `Prompts and success criteria of a suite must have at most ${SUITE_LIMITS.text} characters in total (got ${characters}).`,
    );
  const fault = titlesFault(tasks.map(({ title }) => title));
  if (fault !== undefined) throw suiteInvalid("tasks", fault);
}

/**
 * Returns whether two checked tasks are identical. Labels and rules are compared too, because they affect the results.
 */
export const isSameTask = (a: TaskContent, b: TaskContent): boolean => identityOf(a) === identityOf(b);

const identityOf = ({
  title,
  prompt,
  successCriteria,
  sourceRunUid,
  startingRepoRefs,
  tags,
  labels,
  rule,
}: TaskContent): string =>
  canonicalJson([title, prompt, successCriteria, sourceRunUid, startingRepoRefs, tags, labels, rule]);

/**
 * Returns a text that is equal for two suites created by identical requests. Generated uids and numbers are left out.
 */
export const suiteIdentity = (
  suite: SuiteSettings & { readonly factoryUid: string },
  tasks: readonly TaskContent[],
): string =>
  canonicalJson([
    suite.factoryUid,
    suite.name,
    suite.description,
    suite.agentUid,
    suite.factoryAgentType,
    suite.configurations.map(({ uid: _uid, id: _id, ...configuration }): JsonObject => ({
      ...configuration,
      agent_configs: [...configuration.agent_configs],
    })),
    tasks.map(identityOf),
  ]);

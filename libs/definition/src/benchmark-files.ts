import { omitUndefined } from "@millwright/json";
import type { BenchmarkPart, BenchmarkTaskPart } from "./definition.ts";
import type { Problems } from "./diagnostics.ts";
import { readExecutionBlock } from "./execution-block.ts";
import { Fields, type Placed } from "./fields.ts";
import { rolesFault } from "./rules.ts";
import { parseYaml } from "./yaml-document.ts";

/** A suite without its tasks, and the positions of its references. */
export type ReadSuite = {
  path: string;
  part: Omit<BenchmarkPart, "tasks">;
  nameAt: Placed<string>;
  agent?: Placed<string>;
  tasks: Placed<string>[];
  runners: Placed<string>[];
};
export type ReadTask = { path: string; suite: string; part: BenchmarkTaskPart };

export const START_REF = /^(github|gitlab)\.com:[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)+@[0-9a-f]{40}$/;

/** Reads benchmarks/<slug>/suite.yaml; undefined if it is not valid YAML. */
export function readSuiteFile(slug: string, path: string, text: string, problems: Problems): ReadSuite | undefined {
  const parsed = parseYaml(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, ["name", "description", "agent", "tasks", "configurations"]);
  for (const key of ["name", "agent"]) fields.require(key);
  const [name, description, agent] = [fields.text("name"), fields.text("description"), fields.text("agent")];
  const tasks = fields.lines("tasks") ?? [];
  const doubled = tasks.find((task, index) => tasks.indexOf(task) !== index);
  if (doubled !== undefined)
    fields.error(fields.valueAt("tasks"), "FF_DUPLICATE_NAME", `The task ${doubled} is listed twice.`);
  const runners: Placed<string>[] = [];
  const configurations = fields
    .list("configurations", ["role", "displayName", "model", "harness", "runner"])
    ?.flatMap((entry) => {
      entry.require("role");
      const [role, displayName, read] = [
        entry.text("role"),
        entry.text("displayName"),
        readExecutionBlock(entry, { needsModel: true }),
      ];
      if (read.runner) runners.push(read.runner);
      const { model, harness, runner } = read.block;
      return role === undefined
        ? []
        : [
            {
              role,
              ...omitUndefined({ display_name: displayName, model, harness, runner }),
            },
          ];
    });
  const fault = rolesFault((configurations ?? []).map(({ role }) => role));
  if (fault !== undefined) fields.error(fields.valueAt("configurations"), "FF_INVALID_VALUE", fault);
  return {
    path,
    part: {
      slug,
      name: name ?? slug,
      ...omitUndefined({ description }),
      agent: agent ?? "",
      ...omitUndefined({ configurations }),
    },
    nameAt: { value: name ?? slug, at: fields.valueAt("name") },
    agent: agent === undefined ? undefined : { value: agent, at: fields.valueAt("agent") },
    tasks: [...new Set(tasks)].map((task) => ({ value: task, at: fields.valueAt("tasks") })),
    runners,
  };
}

/** Reads benchmarks/<suite>/tasks/<slug>.yaml; undefined if it is not valid YAML. */
export function readTaskFile(
  suite: string,
  slug: string,
  path: string,
  text: string,
  problems: Problems,
): ReadTask | undefined {
  const parsed = parseYaml(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, [
    "title",
    "prompt",
    "successCriteria",
    "sourceRunId",
    "startingRepoRefs",
    "tags",
  ]);
  for (const key of ["title", "prompt", "successCriteria"]) fields.require(key);
  const [title, prompt, criteria, run] = [
    fields.text("title"),
    fields.text("prompt"),
    fields.text("successCriteria"),
    fields.text("sourceRunId"),
  ];
  const [refs, tags] = [fields.texts("startingRepoRefs"), fields.texts("tags")];
  const wrong = refs?.find((ref) => !START_REF.test(ref));
  if (wrong !== undefined)
    fields.error(
      fields.valueAt("startingRepoRefs"),
      "FF_INVALID_VALUE",
      `${JSON.stringify(wrong)} is not of the form github.com:OWNER/REPO@COMMIT, with the commit in full.`,
    );
  return {
    path,
    suite,
    part: {
      slug,
      title: title ?? "",
      prompt: prompt ?? "",
      success_criteria: criteria ?? "",
      ...omitUndefined({ source_run_id: run, starting_repo_refs: refs, tags }),
    },
  };
}

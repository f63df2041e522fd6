import { artifact } from "./artifact.ts";
import { askUser } from "./ask-user.ts";
import { editFile } from "./edit-file.ts";
import { externalReference } from "./external-reference.ts";
import { finish } from "./finish.ts";
import { list } from "./list.ts";
import { plan } from "./plan.ts";
import { pullRequest } from "./pull-request.ts";
import { readFile } from "./read-file.ts";
import { readSkill } from "./read-skill.ts";
import { screenshot } from "./screenshot.ts";
import { search } from "./search.ts";
import { setStage } from "./set-stage.ts";
import { shell } from "./shell.ts";
import { shellKill, shellOutput } from "./shell-output.ts";
import { spawnRun } from "./spawn-run.ts";
import type { Tool } from "./tool.ts";
import { wait } from "./wait.ts";
import { writeFile } from "./write-file.ts";

/** The tools of the agent of any run. */
export const TOOLS: readonly Tool[] = [
  ...[shell, shellOutput, shellKill, readFile, writeFile, editFile, search, list],
  ...[plan, artifact, screenshot, externalReference, readSkill],
  ...[pullRequest, spawnRun, wait, setStage, askUser, finish],
];

export const awaitsPlan = (mode: string): boolean => mode === "plan" || mode === "orchestrate";
export { plan } from "./plan.ts";

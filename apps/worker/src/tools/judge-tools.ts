import type { worker } from "@millwright/contracts";
import { finish } from "./finish.ts";
import { list } from "./list.ts";
import { readFile } from "./read-file.ts";
import { reportScore } from "./report-score.ts";
import { search } from "./search.ts";
import { shell } from "./shell.ts";
import type { Tool } from "./tool.ts";

/**
 * Returns the tools of a judge, whatever its evidence requests: reading tools, and reporting one of its labels. Without
 * labels, the judge is a script that runs commands whose outcome is the verdict.
 */
export function judgeTools(
  judge: Pick<worker.Judge, "scorerUid" | "classifications">,
  isScript: boolean,
): readonly Tool[] {
  const reading = [readFile, search, list];
  if (judge.classifications.length > 0) return [...reading, reportScore(judge)];
  return isScript ? [...reading, shell, finish] : reading;
}

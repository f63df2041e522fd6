import type { JsonObject } from "@millwright/json";
import { csvLine } from "../formats/csv.ts";

const TRIAL_COLUMNS = [
  "uid",
  "task_uid",
  "task_title",
  "configuration_uid",
  "rep_index",
  "state",
  "terminal_reason",
  "run_id",
  "attempt_count",
  "created_at",
  "started_at",
  "completed_at",
] as const;
const METRIC_COLUMNS = ["total_credits", "dollars", "wall_time_s", "total_tokens"] as const;
const SCORE_COLUMNS = ["scorer_uid", "scorer_name", "status", "classification", "score", "outcome"] as const;

/** The header line. The status of a score is `score_status`, to distinguish it from the `state` of the trial. */
export const CSV_HEADER = csvLine([
  "trial_uid",
  ...TRIAL_COLUMNS.slice(1),
  ...METRIC_COLUMNS,
  ...SCORE_COLUMNS.map((name) => (name === "status" ? "score_status" : name)),
]);

/** Returns a trial as one line of JSON. */
export const ndjsonRow = (trial: JsonObject): string => `${JSON.stringify(trial)}\n`;

/** Returns one line per score of a trial, or a single line if the trial has no scores. */
export function csvRows(trial: JsonObject): string {
  const scores =
    Array.isArray(trial["scores"]) && trial["scores"].length > 0 ? (trial["scores"] as JsonObject[]) : [{}];
  const metrics = (trial["metrics"] ?? {}) as JsonObject;
  const own = [...TRIAL_COLUMNS.map((name) => trial[name]), ...METRIC_COLUMNS.map((name) => metrics[name])];
  return scores.map((score: JsonObject) => csvLine([...own, ...SCORE_COLUMNS.map((name) => score[name])])).join("");
}

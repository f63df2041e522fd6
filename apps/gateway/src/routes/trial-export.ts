import type { JsonObject } from "@millwright/json";

const TRIAL_COLUMNS = ["uid", "task_uid", "task_title", "configuration_uid", "rep_index", "state", "terminal_reason", "run_id", "attempt_count", "created_at", "started_at", "completed_at"] as const;
const METRIC_COLUMNS = ["total_credits", "dollars", "wall_time_s", "total_tokens"] as const;
const SCORE_COLUMNS = ["scorer_uid", "scorer_name", "status", "classification", "score", "outcome"] as const;

/** A spreadsheet would run a text that begins like this. Source: OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r]/;

/** The names of the columns; a score's status is `score_status`, because a trial has a state. */
export const CSV_HEADER = line(["trial_uid", ...TRIAL_COLUMNS.slice(1), ...METRIC_COLUMNS, ...SCORE_COLUMNS.map((name) => (name === "status" ? "score_status" : name))]);

/** Returns a trial as one line of JSON. */
export const ndjsonRow = (trial: JsonObject): string => `${JSON.stringify(trial)}\n`;

/** Returns a line per score of a trial, or one line without a score. */
export function csvRows(trial: JsonObject): string {
  const scores = Array.isArray(trial["scores"]) && trial["scores"].length > 0 ? (trial["scores"] as JsonObject[]) : [{}];
  const metrics = (trial["metrics"] ?? {}) as JsonObject;
  const own = [...TRIAL_COLUMNS.map((name) => trial[name]), ...METRIC_COLUMNS.map((name) => metrics[name])];
  return scores.map((score: JsonObject) => line([...own, ...SCORE_COLUMNS.map((name) => score[name])])).join("");
}

/** Returns one line as RFC 4180 writes it. */
function line(values: readonly unknown[]): string {
  return `${values.map(cell).join(",")}\r\n`;
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") return JSON.stringify(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

import type { JsonObject } from "@millwright/json";
import { checkRule } from "./check-rule.ts";

/** Labels of the correctness of a task: its managed scorer has these two, and rules of tasks choose among them. */
export const CORRECTNESS_LABELS = [
  { value: "pass", score: 1 },
  { value: "fail", score: 0 },
] as const;

/** Returns the rule of a task with the labels of correctness, which it may leave out. Errors: suite_invalid. */
export const checkTaskRule = (rule: JsonObject): JsonObject =>
  checkRule(
    { pass: "pass", fail: "fail", ...rule },
    CORRECTNESS_LABELS.map(({ value }) => value),
    "suite_invalid",
  ) as unknown as JsonObject;

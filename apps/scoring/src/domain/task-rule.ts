import type { JsonObject } from "@millwright/json";
import { checkRule } from "./check-rule.ts";

/** Labels of a task's correctness. The managed scorer has these two labels, and rules of tasks assign one of them. */
export const CORRECTNESS_LABELS = [
  { value: "pass", score: 1 },
  { value: "fail", score: 0 },
] as const;

/** Checks the rule of a task, whose labels default to those of correctness. Errors: suite_invalid. */
export const checkTaskRule = (rule: JsonObject): JsonObject =>
  checkRule(
    { pass: "pass", fail: "fail", ...rule },
    CORRECTNESS_LABELS.map(({ value }) => value),
    "suite_invalid",
  ) as unknown as JsonObject;

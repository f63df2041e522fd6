import { expect, test } from "@jest/globals";
import { endingOf, type Ending } from "./infra-failure.ts";

const CASES: readonly (readonly [state: string, errorCode: string | null, ending: Ending])[] = [
  ["SUCCEEDED", null, "succeeded"],
  ["CANCELLED", null, "cancelled"],
  ["BLOCKED", null, "failure"],
  ["FAILED", null, "failure"],
  ["FAILED", "agent_reported_failure", "failure"],
  ["FAILED", "budget_exceeded", "failure"],
  ["FAILED", "content_policy_violation", "failure"],
  ["FAILED", "invalid_request", "failure"],
  ["FAILED", "resource_unavailable", "infrastructure"],
  ["FAILED", "environment_setup_failed", "infrastructure"],
  ["FAILED", "internal_error", "infrastructure"],
  ["FAILED", "agent_stream_network_error", "infrastructure"],
  ["FAILED", "infrastructure_timeout", "timeout"],
  ["ERROR", "infrastructure_timeout", "timeout"],
  ["ERROR", "agent_process_failed", "failure"],
  ["ERROR", "budget_exceeded", "failure"],
  ["ERROR", "resource_unavailable", "infrastructure"],
  ["ERROR", "internal_error", "infrastructure"],
  ["ERROR", "agent_stream_network_error", "infrastructure"],
  ["ERROR", "agent_stream_failure", "infrastructure"],
  ["ERROR", "authentication_required", "infrastructure"],
  ["ERROR", "a_code_of_a_later_release", "infrastructure"],
  ["ERROR", null, "infrastructure"],
];

test.each(CASES)("a run that ends %s with code %s is %s", (state, errorCode, ending) =>
  expect(endingOf({ state, errorCode })).toBe(ending),
);

import { expect, test } from "@jest/globals";
import { harnessUsageOf } from "./harness-usage.ts";

const at = new Date("2026-11-22T03:00:00Z");
const of = (payload: object) => harnessUsageOf({ seq: 7, occurredAt: at, executionId: 3, payload: payload as never });
const KNOWN = { captureSequence: 7, capturedAt: at, executionId: 3, tokenStatus: "known", toolStatus: "known" };

test("returns counters under the harness's names and omits uncounted ones", () =>
  expect(
    of({
      harness: "claude",
      missed_turns: 0,
      counted: { input_tokens: 5, cache_creation: { ephemeral_5m_input_tokens: 2, other: 1 }, service_tier: "x" },
      tool_calls: { Bash: 2, Read: 1 },
    }),
  ).toEqual({
    ...KNOWN,
    harness: "CLAUDE_CODE",
    counters: { input_tokens: 5, cache_creation: { ephemeral_5m_input_tokens: 2 } },
    toolCalls: { Bash: 2, Read: 1 },
  }));

test("a turn without reported usage makes the coverage partial", () =>
  expect(of({ harness: "codex", missed_turns: 1, counted: { total_tokens: 0 }, tool_calls: {} })).toEqual({
    ...KNOWN,
    tokenStatus: "partial",
    harness: "CODEX",
    counters: { total_tokens: 0 },
    toolCalls: {},
  }));

test("the tool calls of a turn that was lost with its worker are unknown", () =>
  expect(
    of({
      harness: "codex",
      missed_turns: 1,
      lost_turns: 1,
      counted: { total_tokens: 5 },
      tool_calls: { exec_command: 1 },
    }),
  ).toMatchObject({
    tokenStatus: "partial",
    toolStatus: "partial",
    toolCalls: { exec_command: 1 },
  }));

test.each([
  ["claude", { input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 7, cache_creation_input_tokens: 2 }, 17],
  ["codex, whose parts are in its sums", { input_tokens: 12, cached_input_tokens: 7, output_tokens: 3 }, 15],
  ["codex, which did not count what was written", { input_tokens: 12 }, undefined],
])("the tokens of %s are added once each", (harness, counted, expected) =>
  expect(of({ harness: harness.split(",")[0], missed_turns: 0, counted })?.reportedTokens).toBe(expected),
);

test.each([
  ["no tokens", { harness: "codex", missed_turns: 2, tool_calls: { exec_command: 1 } }],
  ["numbers that are none", { harness: "codex", counted: { input_tokens: "5", output_tokens: -1, total_tokens: 1.5 } }],
  ["a program without published numbers", { harness: "gemini", missed_turns: 0, counted: { input_tokens: 5 } }],
  ["an unknown program", { harness: "toString", counted: { input_tokens: 5 } }],
  ["another form", { harness: 5, counted: [1] }],
])("%s: unavailable", (_, payload) => expect(of(payload)).toBeUndefined());

import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { interpret } from "../../../test/support/harness-lines.ts";
import { claudeAdapter } from "./claude-adapter.ts";

const RECORDED = readFileSync(new URL("../../../test/harnesses/claude.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n");
const read = (lines: readonly string[]) => interpret(claudeAdapter, lines).events.filter(({ t }) => t !== "session");

test("recorded lines of an interrupted turn become normalised events", () =>
  expect(read(RECORDED)).toEqual([
    { t: "message", text: "I look." },
    {
      t: "tool_start",
      id: "toolu_0",
      name: "Bash",
      input: { command: "echo hi > a.txt; cat a.txt", description: "x" },
    },
    { t: "tool_start", id: "toolu_1", name: "Bash", input: { command: "exit 3", description: "x" } },
    { t: "tool_end", id: "toolu_0", ok: true, output: "hi" },
    { t: "tool_end", id: "toolu_1", ok: false, output: "Exit code 3" },
    { t: "message", text: "Sleep" },
    { t: "tool_start", id: "toolu_0", name: "Bash", input: { command: "sleep 30", description: "x" } },
    { t: "tool_end", id: "toolu_0", ok: false, output: expect.stringContaining("doesn't want to proceed") },
    { t: "usage", counted: expect.objectContaining({ input_tokens: 200, output_tokens: 20 }) },
    { t: "turn_end", ok: false },
  ]));

test.each([
  ["content of another form", '{"type":"assistant","message":{"content":"text"}}'],
  ["blocks of another form", '{"type":"assistant","message":{"content":[1,{"type":"thinking","thinking":"hm"}]}}'],
  ["a part of an answer", '{"type":"stream_event","event":{}}'],
])("%s means nothing", (_, line) => expect(read([line])).toEqual([]));

test.each(["Hello", "[1]", '{"type":"news","content":[1]}', '{"type":"system","subtype":"news"}'])(
  "%s is stored unchanged",
  (line) => expect(read([line])).toEqual([{ t: "unknown", line }]),
);

test("reports a result with subtype success and is_error as a failed turn", () =>
  expect(read(['{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401"}'])).toEqual([
    { t: "turn_end", ok: false, message: "API Error: 401" },
  ]));

test("a retry of the model is reported", () =>
  expect(read(['{"type":"system","subtype":"api_retry","attempt":1,"error_status":529}'])).toEqual([
    { t: "warning", text: "The model did not respond (529); the call is retried." },
  ]));

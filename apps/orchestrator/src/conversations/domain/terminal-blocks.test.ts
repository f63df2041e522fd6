import { describe, expect, test } from "@jest/globals";
import { as, type RunUid } from "@millwright/ids";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject } from "../../runs/domain/run.ts";
import { TerminalBlocks } from "./terminal-blocks.ts";

const RUN = as<RunUid>("0190c1a2-0000-7000-8000-000000000001");
const at = (seq: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString();

/** Returns the blocks of events that occurred one second apart. */
function blocksOf(...events: [kind: RunEvent["kind"], payload: JsonObject, more?: Partial<RunEvent>][]) {
  const blocks = new TerminalBlocks();
  for (const [index, [kind, payload, more]] of events.entries())
    blocks.add({
      runUid: RUN,
      seq: index + 1,
      uid: `e${index + 1}`,
      kind,
      occurredAt: new Date(at(index + 1)),
      executionId: 7,
      attempt: 1,
      isSuperseded: false,
      payload,
      ...more,
    });
  return blocks.finish();
}
const start = (callId: string, command: string): ["tool_start", JsonObject] => [
  "tool_start",
  { call_id: callId, name: "run_command", input: { command } },
];
const end = (
  callId: string,
  output: JsonObject,
  state = "completed",
  name = "run_command",
): ["tool_end", JsonObject] => ["tool_end", { call_id: callId, name, state, output }];

test("a command is a block with its terminal output", () =>
  expect(
    blocksOf(
      start("c1", "npm test"),
      end("c1", { exit_code: 0, output: "1 %\r\u001b[32m100 %\u001b[0m\n", cwd: "/workspace/shop" }),
    ),
  ).toEqual([
    {
      id: "c1",
      run_id: RUN,
      execution_id: 7,
      kind: "command",
      command: "npm test",
      cwd: "/workspace/shop",
      output: "100 %\n",
      exit_code: 0,
      state: "completed",
      started_at: at(1),
      completed_at: at(2),
    },
  ]));

test("a setup command is a block", () =>
  expect(blocksOf(["setup_command", { command: "npm ci", exit_code: 1, output: "no" }])).toEqual([
    {
      id: "e1",
      run_id: RUN,
      execution_id: 7,
      kind: "setup_command",
      command: "npm ci",
      output: "no",
      exit_code: 1,
      state: "failed",
      started_at: at(1),
      completed_at: at(1),
    },
  ]));

test.each([
  [
    "ended with another code than 0",
    end("c", { exit_code: 3, output: "x" }),
    { state: "failed", exit_code: 3, output: "x" },
  ],
  [
    "took too long",
    end("c", { error: "The command took longer.", exit_code: null, output: "" }, "failed"),
    { state: "failed", exit_code: null, output: "The command took longer." },
  ],
  [
    "was interrupted",
    end("c", { error: "It was interrupted.", output: "half" }, "interrupted"),
    { state: "interrupted", exit_code: null, output: "half" },
  ],
  [
    "was not allowed",
    end("c", { error: "Not before a plan." }, "denied"),
    { state: "denied", output: "Not before a plan." },
  ],
  ["wrote too much", end("c", { exit_code: 0, output: "x", truncated: true }), { truncated: true }],
])("a command that %s: its state and output", (_name, ending, shown) =>
  expect(blocksOf(start("c", "x"), ending)).toMatchObject([shown]),
);

test("a command without an end is running, until its worker is lost", () => {
  expect(blocksOf(start("c", "sleep 9"))).toMatchObject([{ state: "running", exit_code: null, output: "" }]);
  expect(blocksOf(start("c", "sleep 9"), ["worker_lost", {}])).toMatchObject([{ state: "interrupted" }]);
});

describe("a command in the background", () => {
  const begun = [start("c1", "serve"), end("c1", { id: "bg-1", running: true })] as const;
  test("appends each output that was read, and ends when its end is reported", () => {
    const read = end("c2", { id: "bg-1", running: true, output: "one\n" }, "completed", "read_command_output");
    const over = end("c3", { id: "bg-1", running: false, exit_code: 0, output: "two\n" }, "completed", "stop_command");
    expect(blocksOf(...begun, read)).toMatchObject([{ output: "one\n", state: "running", exit_code: null }]);
    expect(blocksOf(...begun, read, over)).toMatchObject([
      { id: "c1", command: "serve", output: "one\ntwo\n", state: "completed", exit_code: 0, completed_at: at(4) },
    ]);
  });
  test("is interrupted if its worker is lost", () =>
    expect(blocksOf(...begun, ["worker_lost", {}])).toMatchObject([{ state: "interrupted" }]));
});

test("ignores other actions, superseded attempts and ends without a start", () =>
  expect(
    blocksOf(
      ["tool_start", { call_id: "c", name: "edit_files", input: {} }],
      end("c", { files: [] }, "completed", "edit_files"),
      [...start("d", "x"), { isSuperseded: true }],
      end("gone", { exit_code: 0 }),
      end("e", { id: "bg-9", running: true, output: "x" }, "completed", "read_command_output"),
    ),
  ).toEqual([]));

import { describe, expect, test } from "@jest/globals";
import { scriptedFences } from "./fences.ts";
import { parseScript } from "./parse-script.ts";

const parse = (text: string) => scriptedFences(text).flatMap(parseScript);
const block = (...lines: string[]) => ["Please do this:", "```scripted", ...lines, "```"].join("\n");
const tool = (name: string, input: object, mayFail = false) => ({ kind: "tool", name, input, mayFail });

test.each([
  ["say: Hello", { kind: "say", text: "Hello" }],
  ["fail: It cannot be done", { kind: "fail", reason: "It cannot be done" }],
  ["shell: npm test", tool("shell", { command: "npm test" })],
  ["shell: true", tool("shell", { command: "true" })],
  [
    "shell: {command: npm test, timeout_seconds: 90, allow_failure: true}",
    tool("shell", { command: "npm test", timeout_seconds: 90 }, true),
  ],
  ["read: a.txt", tool("read_file", { path: "a.txt" })],
  ["read: {path: a.txt, start_line: 2, end_line: 4}", tool("read_file", { path: "a.txt", start_line: 2, end_line: 4 })],
  ['write: {path: hello.txt, content: "hi\\n"}', tool("write_file", { path: "hello.txt", content: "hi\n" })],
  ["edit: {path: a, old: x, new: ''}", tool("edit_file", { path: "a", old: "x", new: "" })],
  ["search: needle", tool("search", { pattern: "needle" })],
  ["list: src", tool("list", { path: "src" })],
  ["plan: {title: T, markdown: M}", tool("plan", { title: "T", markdown: "M" })],
  ["artifact: out.txt", tool("artifact", { file: "out.txt" })],
  ["artifact: {file: out.txt, public: false}", tool("artifact", { file: "out.txt", public: false })],
  ["screenshot: {file: a.png, description: D}", tool("screenshot", { file: "a.png", description: "D" })],
  ["external_reference: https://example.com/1", tool("external_reference", { url: "https://example.com/1" })],
  ["pull_request: {title: Add hello}", tool("pull_request", { title: "Add hello" })],
  ["spawn: {agent: implementer, prompt: Do it}", tool("spawn_run", { agent: "implementer", prompt: "Do it" })],
  ["wait: any", tool("wait", { policy: "any" })],
  ["stage: REVIEW", tool("set_stage", { stage: "REVIEW" })],
  ["stage: {stage: REVIEW, allow_failure: true}", tool("set_stage", { stage: "REVIEW" }, true)],
  ["ask: Which name?", tool("ask_user", { question: "Which name?" })],
  ["finish:", tool("finish", {})],
])("the step `%s` is read", (step, action) => {
  expect(parse(block(`- ${step}`)).map((read) => read.action)).toEqual([action]);
});

test("an outer fence of four backticks contains a nested script", () => {
  const text = [
    "````scripted",
    "- spawn:",
    "    agent: implementer",
    "    prompt: |",
    "      Fix it.",
    "      ```scripted",
    "      - shell: npm test",
    "      ```",
    "- wait: all",
    "````",
  ].join("\n");
  const [spawn, wait] = parse(text);
  expect(spawn?.action).toMatchObject({ input: { prompt: "Fix it.\n```scripted\n- shell: npm test\n```\n" } });
  expect(wait).toMatchObject({ name: "wait", line: 9 });
});

test("several blocks of one text form one script, in order; similar text is ignored", () => {
  const text = [
    "```",
    "```scripted",
    "- say: no",
    "```",
    "   ```scripted",
    "   - say: one",
    "   ```",
    "text ```scripted",
    "~~~scripted",
    "- say: |-",
    "    ```",
    "~~~",
    "    ```scripted",
  ];
  expect(parse(text.slice(0, 4).join("\n"))).toEqual([]); // inside a block of another language
  expect(parse(text.slice(4).join("\n")).map((step) => step.action)).toEqual([
    { kind: "say", text: "one" },
    { kind: "say", text: "```" },
  ]);
});

describe("an error is reported with its line and column in the whole text", () => {
  test.each([
    [["- shel: x"], 3, 3, /there is no step "shel"; the steps are say, shell, /],
    [["- say: a", "- write: {path: a.txt}"], 4, 3, /write.content: Invalid input/],
    [["- say: a", "- write:", "    path: ''", "    content: x"], 5, 11, /write.path: must not be empty/],
    [["- edit: {path: a, old: b, new: c, all: d}"], 3, 9, /edit: Unrecognized key: "all"/],
    [["- say"], 3, 3, /a step is one name with its value/],
    [["- say: a", "  ask: b"], 3, 3, /a step is one name with its value/],
    [["say: a"], 3, 1, /a script is a list of steps/],
    [[""], 3, 1, /a script is a list of steps/],
    [["- say: 'a"], 3, 10, /quote/],
    [["- wait: some"], 3, 3, /wait.policy: Invalid option/],
    [["- shell: {command: x, timeout_seconds: -1}"], 3, 40, /must be a whole number/],
  ])("%j", (lines, line, column, message) => {
    let fault: unknown;
    try {
      parse(block(...lines));
    } catch (error) {
      fault = error;
    }
    expect(fault).toMatchObject({ name: "ScriptError", line, column, message: expect.stringMatching(message) });
  });

  test("a block that is not closed", () => {
    expect(() => parse("x\n```scripted\n- say: a")).toThrow(
      expect.objectContaining({ line: 2, message: "the scripted block is not closed" }),
    );
  });
});

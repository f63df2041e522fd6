import type { JsonObject } from "@bufbuild/protobuf";
import { omitUndefined } from "@millwright/json";
import { z } from "zod";
import { mcpToolName } from "../mcp-tool-names.ts";
import { isAnObject } from "../event-fields.ts";

/**
 * The steps of a script and their input schemas. YAML types are not inferred, so every scalar is a string: `shell:
 * true` runs the program `true`.
 */
const text = z.string().refine((value) => value.trim() !== "", "must not be empty");
const flag = z.enum(["true", "false"]).transform((value) => value === "true");
const count = z
  .string()
  .regex(/^[1-9]\d{0,5}$/, "must be a whole number")
  .transform(Number);
const path = text;

/** Accepts `key: text` as a short form of `key: {<main>: text}`. */
const shorthand = <S extends z.ZodType>(main: string, schema: S) =>
  z.preprocess((value) => (typeof value === "string" ? { [main]: value } : value), schema);

export type StepAction =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "tool"; readonly name: string; readonly input: JsonObject; readonly mayFail: boolean };

const tool = (name: string, input: Record<string, unknown>, mayFail = false): StepAction => ({
  kind: "tool",
  name,
  input: omitUndefined(input) as JsonObject,
  mayFail,
});

/** Parses the JSON input of a tool whose members are not strings. */
function readObject(json: string, context: z.RefinementCtx): JsonObject {
  try {
    const value: unknown = JSON.parse(json);
    if (isAnObject(value)) return value;
  } catch {
    // The issue is added below.
  }
  context.addIssue({ code: "custom", message: "must be a JSON object" });
  return z.NEVER;
}

/** What each step means: an assistant message, the failure of the run, or a call of one of the agent's tools. */
export const STEPS = {
  say: text.transform((said): StepAction => ({ kind: "say", text: said })),
  shell: shorthand(
    "command",
    z.strictObject({
      command: text,
      timeout_seconds: count.optional(),
      background: flag.optional(),
      allow_failure: flag.optional(),
    }),
  ).transform(({ allow_failure: mayFail, ...input }) => tool("shell", input, mayFail ?? false)),
  shell_output: shorthand(
    "id",
    z.strictObject({ id: text, wait_seconds: count.optional(), allow_failure: flag.optional() }),
  ).transform(({ allow_failure: mayFail, ...input }) => tool("shell_output", input, mayFail ?? false)),
  shell_kill: shorthand("id", z.strictObject({ id: text })).transform((input) => tool("shell_kill", input, true)),
  read: shorthand("path", z.strictObject({ path, start_line: count.optional(), end_line: count.optional() })).transform(
    (input) => tool("read_file", input),
  ),
  write: z.strictObject({ path, content: z.string() }).transform((input) => tool("write_file", input)),
  edit: z
    .strictObject({ path, old: z.string().min(1, "must not be empty"), new: z.string() })
    .transform((input) => tool("edit_file", input)),
  search: shorthand("pattern", z.strictObject({ pattern: text, path: path.optional() })).transform((input) =>
    tool("search", input),
  ),
  list: shorthand("path", z.strictObject({ path, pattern: text.optional() })).transform((input) => tool("list", input)),
  plan: z.strictObject({ title: text, markdown: text }).transform((input) => tool("plan", input)),
  artifact: shorthand(
    "file",
    z.strictObject({ file: path, title: text.optional(), description: text.optional(), public: flag.optional() }),
  ).transform((input) => tool("artifact", input)),
  screenshot: shorthand(
    "file",
    z.strictObject({ file: path, description: text.optional(), public: flag.optional() }),
  ).transform((input) => tool("screenshot", input)),
  external_reference: shorthand(
    "url",
    z.strictObject({ url: text, reference_type: text.optional(), title: text.optional(), public: flag.optional() }),
  ).transform((input) => tool("external_reference", input)),
  skill: text.transform((name) => tool("read_skill", { name })),
  pull_request: shorthand(
    "title",
    z.strictObject({ title: text, body: z.string().optional(), repository: text.optional() }),
  ).transform((input) => tool("pull_request", input)),
  spawn: shorthand(
    "prompt",
    z.strictObject({ prompt: text, agent: text.optional(), title: text.optional() }),
  ).transform((input) => tool("spawn_run", input)),
  wait: shorthand(
    "policy",
    z.strictObject({ policy: z.enum(["all", "any"]), allow_failure: flag.optional() }),
  ).transform(({ allow_failure: mayFail, ...input }) => tool("wait", input, mayFail ?? false)),
  mcp: z
    .strictObject({
      server: text,
      tool: text,
      input: z.record(z.string(), z.unknown()).optional(),
      json: text.transform(readObject).optional(),
      allow_failure: flag.optional(),
    })
    .transform(({ server, tool: name, input, json, allow_failure: mayFail }) =>
      tool(mcpToolName(server, name), { ...input, ...json }, mayFail ?? false),
    ),
  stage: shorthand("stage", z.strictObject({ stage: text, allow_failure: flag.optional() })).transform(
    ({ stage, allow_failure: mayFail }) => tool("set_stage", { stage }, mayFail ?? false),
  ),
  score: shorthand("label", z.strictObject({ label: text, reason: text.optional() })).transform(({ label, reason }) =>
    tool("report_score", { classification: label, reason }),
  ),
  ask: text.transform((question) => tool("ask_user", { question })),
  finish: z.string().transform((message) => tool("finish", message === "" ? {} : { message })),
  fail: text.transform((reason): StepAction => ({ kind: "fail", reason })),
} as const satisfies Record<string, z.ZodType<StepAction>>;

export type StepName = keyof typeof STEPS;
export const isStepName = (name: string): name is StepName => Object.hasOwn(STEPS, name);

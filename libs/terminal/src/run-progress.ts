import { printable } from "./printable.ts";

type Json = Record<string, unknown>;

/** A run event as returned by `GET /agent/runs/{runId}/events`. */
export type RunEventJson = { seq: number; kind: string; occurred_at: string; payload?: Json };

/** The display of one event: a mark, one line, and optional lines of detail below it. */
export type ProgressLine = {
  mark: "start" | "say" | "work" | "done" | "fail" | "wait" | "note";
  text: string;
  detail?: string[];
};

const DETAIL_LINES_MAX = 6;

/**
 * Returns a run event as a line for people, without control sequences; undefined for events that only programs need.
 */
export function describeRunEvent(event: RunEventJson): ProgressLine | undefined {
  const line = Object.hasOwn(DESCRIPTIONS, event.kind) ? DESCRIPTIONS[event.kind]!(event.payload ?? {}) : undefined;
  return line && { ...line, text: printable(line.text), detail: line.detail?.map(printable) };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const object = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});

const DESCRIPTIONS: Record<string, (payload: Json) => ProgressLine | undefined> = {
  run_created: () => ({ mark: "start", text: "queued" }),
  run_claimed: (p) => ({ mark: "start", text: `claimed by worker ${text(p["worker_host"])}` }),
  sandbox_ready: (p) => ({ mark: "start", text: `sandbox ready (${text(p["kind"])})` }),
  image_substituted: (p) => ({
    mark: "note",
    text: `image ${text(p["image"])} is not available; the worker's own tools are used`,
  }),
  repository_cloned: (p) => ({
    mark: "work",
    text: `cloned ${text(p["owner"])}/${text(p["name"])} on branch ${text(p["branch"])}`,
  }),
  setup_command: (p) => ({ mark: p["exit_code"] === 0 ? "work" : "fail", text: `setup: ${text(p["command"])}` }),
  message: (p) => (p["role"] === "assistant" ? { mark: "say", text: text(p["text"]) } : undefined),
  model_step: (p) => (text(p["text"]) ? { mark: "say", text: text(p["text"]) } : undefined),
  command_output: (p) => ({ mark: "note", text: text(p["text"]).trimEnd() }),
  agent_resumed: (p) => ({ mark: "note", text: text(p["text"]).split("\n", 1)[0] ?? "" }),
  tool_end: (p) => marked(describeTool(p), p["repeated"] === true),
  pushed: (p) => ({ mark: "work", text: `pushed ${text(p["branch"])} (${text(p["sha"]).slice(0, 7)})` }),
  egress_denied: (p) => ({
    mark: "note",
    text: `refused: ${text(p["host"])}:${String(p["port"])} (${text(p["reason"])})`,
  }),
  limit_exceeded: (p) => ({ mark: "fail", text: `over its limit of ${text(p["resource"])}: the sandbox is ended` }),
  run_waiting: (p) => ({ mark: "wait", text: text(p["message"]) || "waiting for its child runs" }),
  child_finished: (p) => ({ mark: "note", text: `child run ended ${text(p["state"])}` }),
  worker_lost: () => ({ mark: "fail", text: "the worker was lost; the turn starts again" }),
  worker_stopped: () => ({ mark: "note", text: "the worker stops; the run continues on another one" }),
  attempt_failed: (p) => ({ mark: "fail", text: `the worker could not execute the run: ${text(p["message"])}` }),
  dispatch_failed: (p) => ({ mark: "fail", text: `no machine could be started: ${text(p["message"])}` }),
  warning: (p) => ({ mark: "note", text: text(p["text"]) }),
  run_finished: (p) => ({
    mark: p["state"] === "SUCCEEDED" ? "done" : "fail",
    text: `${text(p["state"]).toLowerCase()}${text(p["message"]) ? `: ${firstLine(text(p["message"]))}` : ""}`,
  }),
  debug_window_opened: (p) => ({
    mark: "note",
    text: `debug window open for ${Math.round(Number(p["window_ms"]) / 60_000)} min: follow-ups work in what the setup left`,
  }),
  debug_window_ended: () => ({ mark: "note", text: "debug window closed" }),
};

const marked = (line: ProgressLine, isRepeated: boolean): ProgressLine =>
  isRepeated ? { ...line, text: `${line.text} (executed again)` } : line;

function describeTool(payload: Json): ProgressLine {
  const input = object(payload["input"]);
  const output = object(payload["output"]);
  const name = text(payload["name"]);
  const hasFailed = payload["state"] !== "completed";
  const mark = hasFailed ? "fail" : "work";
  if (name === "run_command") {
    const exit = typeof output["exit_code"] === "number" ? output["exit_code"] : undefined;
    const line = `$ ${text(input["command"]) || text(output["command"])}`;
    return {
      mark: exit === 0 && !hasFailed ? "work" : "fail",
      text: exit === 0 ? line : `${line}  (exit ${exit ?? "?"})`,
      detail: tail(text(output["output"])),
    };
  }
  const subject = [
    input["agent"],
    input["title"],
    output["url"],
    input["stage"],
    input["path"],
    ...paths(output),
    ...paths(input),
  ]
    .map(text)
    .find((value) => value !== "");
  return { mark, text: subject ? `${LABELS[name] ?? name} ${subject}` : (LABELS[name] ?? name) };
}

const LABELS: Record<string, string> = {
  edit_files: "edited",
  read_files: "read",
  create_document: "wrote the plan",
  report_artifact: "reported",
  open_pull_request: "opened pull request",
  spawn_run: "dispatched a child run to",
  set_task_stage: "moved the task to",
  wait_for_runs: "waits for its child runs",
};

function paths(value: Json): unknown[] {
  return Array.isArray(value["files"]) ? value["files"].map((file) => object(file)["path"]) : [];
}

/** Returns the last lines of an output, after a mark for those that are omitted. */
function tail(output: string): string[] {
  const lines = output
    .trimEnd()
    .split("\n")
    .filter((line) => line.trim() !== "");
  const omitted = Math.max(0, lines.length - DETAIL_LINES_MAX);
  return [
    ...(omitted > 0 ? [`[${omitted} ${omitted === 1 ? "line" : "lines"} omitted]`] : []),
    ...lines.slice(omitted),
  ];
}

/** Returns the first line of a text, with a mark if there are more. */
function firstLine(message: string): string {
  const [first = "", ...more] = message.trimEnd().split("\n");
  return more.length > 0 ? `${first} [${more.length} more ${more.length === 1 ? "line" : "lines"}]` : first;
}

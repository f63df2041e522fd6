import { useState, type ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { structuredPatch } from "diff";
import { ChevronRight } from "lucide-react";
import { DiffView, linesOfHunks } from "../../ui/diff-view.tsx";
import { SafeText, visibleText } from "../../ui/safe-text.tsx";
import { TerminalBlock } from "../../ui/terminal.tsx";
import { arrayOf, textOf, type TimelineItem } from "./timeline.ts";

type Call = Pick<
  TimelineItem & { readonly kind: "tool" },
  "name" | "input" | "state" | "output" | "progress" | "durationMs"
>;
type Props = {
  readonly call: Call;
  /** Returns the address of a screenshot that the call delivered. */
  readonly screenshotUrl: (artifactUid: string) => string;
};

/** What a completed call did, and what a call in progress or a failed one was to do. */
const LABELS: Readonly<Record<string, readonly [done: string, intended: string]>> = {
  run_command: ["Ran", "Run"],
  edit_files: ["Edited", "Edit"],
  read_files: ["Read", "Read"],
  search_files: ["Searched", "Search"],
  list_files: ["Listed", "List"],
  create_document: ["Wrote the plan", "Write the plan"],
  report_artifact: ["Reported", "Report"],
  open_pull_request: ["Opened pull request", "Open pull request"],
  spawn_run: ["Started a child run of", "Start a child run of"],
  set_task_stage: ["Moved the task to", "Move the task to"],
  wait_for_runs: ["Waited for its child runs", "Wait for its child runs"],
  ask_user: ["Asked", "Ask"],
  use_computer: ["Took the screenshot", "Take the screenshot"],
};

/** A tool call: what it did in one line, and its input and output below. Commands and edits are open. */
export function ToolCall({ call, screenshotUrl }: Props): ReactNode {
  const isFailed = call.state === "failed" || call.state === "denied";
  const content = contentOf(call);
  const [isOpen, setOpen] = useState(call.name === "run_command" || call.name === "edit_files" || isFailed);
  const childRunId = textOf(call.output["run_id"]);
  const screenshot = call.name === "use_computer" ? textOf(call.output["artifact_uid"]) : "";
  return (
    <div className="tool-call">
      <div className="tool-line">
        <button
          type="button"
          className="tool-toggle"
          aria-expanded={isOpen}
          disabled={content === undefined}
          onClick={() => setOpen(!isOpen)}
        >
          <ChevronRight size={13} aria-hidden />
          <span>{LABELS[call.name]?.[isFailed || call.state === "running" ? 1 : 0] ?? call.name}</span>
          <code>
            <SafeText>{subjectOf(call)}</SafeText>
          </code>
        </button>
        {call.state === "running" && <span className="badge busy">Running</span>}
        {isFailed && <span className="badge bad">{call.state === "denied" ? "Denied" : "Failed"}</span>}
        {call.durationMs !== undefined && <span className="soft small">{durationText(call.durationMs)}</span>}
        {childRunId !== "" && (
          <Link to="/runs/$runId" params={{ runId: childRunId }}>
            Open run
          </Link>
        )}
      </div>
      {screenshot !== "" && (
        <img
          className="screenshot"
          loading="lazy"
          src={screenshotUrl(screenshot)}
          alt={visibleText(textOf(call.input["description"])) || "Screenshot without a description"}
        />
      )}
      {isOpen && content}
    </div>
  );
}

const durationText = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function subjectOf({ input, output }: Call): string {
  const path = [...arrayOf(output["files"]), ...arrayOf(input["files"])].map((file) => textOf(file["path"]))[0];
  return (
    [input["command"], input["path"], input["agent"], input["title"], input["stage"], input["question"], output["url"]]
      .map(textOf)
      .find((text) => text !== "") ??
    path ??
    ""
  );
}

/** Returns the details of a call, or undefined if its line says everything. */
function contentOf(call: Call): ReactNode {
  const { name, input, output, state, progress } = call;
  if (name === "run_command") {
    const text = state === "running" ? progress : textOf(output["output"]) || progress;
    const exit = output["exit_code"];
    if (text === "" && (exit === 0 || exit === undefined)) return undefined;
    return (
      <>
        {text !== "" && <TerminalBlock label={`Output of ${textOf(input["command"])}`}>{text}</TerminalBlock>}
        {typeof exit === "number" && exit !== 0 && <p className="soft small">exit {exit}</p>}
      </>
    );
  }
  const [before, after] = [input["old"], input["new"] ?? input["content"]];
  if (typeof after === "string") {
    const path = textOf(input["path"]);
    const { hunks } = structuredPatch(path, path, textOf(before), after, undefined, undefined, { context: 3 });
    return <DiffView label={`Change of ${path}`} lines={linesOfHunks(hunks, before === undefined)} />;
  }
  const error = textOf(output["error"]) || textOf(output["message"]);
  const rest = JSON.stringify({ input, output }, undefined, 2);
  if (Object.keys(input).length + Object.keys(output).length === 0) return undefined;
  return (
    <>
      {error !== "" && (
        <p className="soft">
          <SafeText>{error}</SafeText>
        </p>
      )}
      <pre className="json" tabIndex={0} role="region" aria-label={`Input and output of ${name}`}>
        <SafeText>{rest}</SafeText>
      </pre>
    </>
  );
}

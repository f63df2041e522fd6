import { newUid } from "@millwright/ids";
import { textAt } from "../model/event-fields.ts";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import { ToolFailure } from "../tools/tool-failure.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { PastCall, Resumption } from "./resumption.ts";

type ResumeDeps = {
  readonly conversation: Conversation;
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, "callId">;
  /** Whether lost steps are repeated in order (a script). An AI model is informed of them and decides itself. */
  readonly repeatsSteps: boolean;
  /** What was lost. With a worker, everything except the saved workspace is lost. */
  readonly lost: "worker" | "sandbox";
  /** Whether the newest checkpoint was restored or there was none. */
  readonly isRestored: boolean;
};

/**
 * Returns whether a script may repeat a call. Calls with external effects are not repeated, because the effects would
 * be duplicated; the script continues after them.
 */
const isRepeatable = (tools: readonly Tool[], { name }: PastCall): boolean =>
  tools.find((tool) => tool.name === name)?.isRepeatable !== false;

/**
 * Makes the workspace and the events consistent before an agent continues. It writes files again that later steps
 * wrote, closes running calls as interrupted, and informs the agent. A completed call is repeated only for a script,
 * and only if its change of the workspace was lost; its events are marked `repeated`. Returns whether files were
 * written. Throws `SandboxGone`.
 */
export async function resume(deps: ResumeDeps, { calls }: Resumption): Promise<boolean> {
  const { conversation, repeatsSteps, lost } = deps;
  const changed = calls.filter(({ state, changes }) => state === "done" && changes !== "nothing");
  const uncovered = lost === "sandbox" ? [] : changed.filter(({ isCovered }) => !(isCovered && deps.isRestored));
  const { written, missing } = await writeAgain(deps, uncovered);
  const open = calls.filter(({ state }) => state === "running");
  for (const call of open) if (!call.isClosed) closeLost(deps, call);
  const repeats = repeatsSteps ? [...missing, ...open].filter((call) => isRepeatable(deps.tools, call)) : [];
  conversation.record("agent_resumed", {
    ...{ session_id: newUid(), workspace: deps.context.workspace.sandbox.workspace, lost },
    text: repeatsSteps ? scriptText({ lost, written, repeats }) : modelText({ lost, written, missing, open }),
    repeats: repeats.map(({ callId }) => callId),
  });
  return written.length > 0;
}

type Rewritten = { readonly written: readonly PastCall[]; readonly missing: readonly PastCall[] };

/**
 * Repeats calls that only wrote files. For a script, this ends at the first step that cannot be repeated in isolation:
 * all steps from there on are repeated in order. For an AI model, every such file is written.
 */
async function writeAgain(deps: ResumeDeps, uncovered: readonly PastCall[]): Promise<Rewritten> {
  const written: PastCall[] = [];
  const missing: PastCall[] = [];
  for (const call of uncovered) {
    const isPossible = call.changes === "files" && !(deps.repeatsSteps && missing.length > 0);
    if (isPossible && (await isWritten(deps, call))) written.push(call);
    else missing.push(call);
  }
  return { written, missing };
}

async function isWritten({ tools, context }: ResumeDeps, { name, input, callId }: PastCall): Promise<boolean> {
  const tool = tools.find((candidate) => candidate.name === name);
  const parsed = tool?.input.safeParse(input);
  if (!tool || !parsed?.success) return false;
  try {
    await tool.run(parsed.data, { ...context, callId });
    return true;
  } catch (error) {
    if (error instanceof ToolFailure || error instanceof SandboxRefusal) return false;
    throw error;
  }
}

/** Records the end event of a call, with the fields of its start event. */
function closeLost(
  { conversation, lost }: Pick<ResumeDeps, "conversation" | "lost">,
  { callId, name }: Pick<PastCall, "callId" | "name">,
): void {
  const { duration_ms: _, ...begun } = conversation.events.findLast(
    ({ kind, payload }) => kind === "tool_start" && payload["call_id"] === callId,
  )?.payload ?? { call_id: callId, name };
  const error = `It was interrupted when its ${lost} was lost; its effect is unknown: check before you repeat it.`;
  conversation.record("tool_end", { ...begun, state: "interrupted", lost, output: { error } });
}

/** Closes the calls that a third-party agent program had started. */
export function closeLostCalls(conversation: Conversation, lost: ResumeDeps["lost"]): void {
  const events = conversation.ofExecution;
  const ended = new Set(
    events.filter(({ kind }) => kind === "tool_end").map(({ payload }) => textAt(payload, "call_id")),
  );
  const open = events.filter(({ kind, payload }) => kind === "tool_start" && !ended.has(textAt(payload, "call_id")));
  for (const { payload } of open)
    closeLost({ conversation, lost }, { callId: textAt(payload, "call_id"), name: textAt(payload, "name") });
}

const NAMED_MAX = 20;

function modelText({
  lost,
  written,
  missing,
  open,
}: Rewritten & { lost: ResumeDeps["lost"]; open: readonly PastCall[] }): string {
  const parts = [
    `The ${lost} you worked in was lost. You continue in a new one, from what is recorded: everything above has happened.`,
    lost === "worker"
      ? "Processes, temporary files, your home directory and files that git ignores are gone; setup commands have run again."
      : "Processes and temporary files are gone; files of the workspace are as they were.",
    missing.length === 0 && lost === "worker" ? "The other files are as your finished calls left them." : "",
    written.length === 0 ? "" : `Written again from the record:\n${listed(written)}`,
    missing.length === 0
      ? ""
      : `What these calls changed in the workspace after it was last saved is lost; check it before you rely on it:\n${listed(missing)}`,
    open.length === 0
      ? ""
      : `These calls were running, and their effect is unknown; check before you repeat them:\n${listed(open)}`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Returns the text of the event about a resumed script, for people who read the run. */
function scriptText({
  lost,
  written,
  repeats,
}: {
  lost: ResumeDeps["lost"];
  written: readonly PastCall[];
  repeats: readonly PastCall[];
}): string {
  const parts = [
    `The ${lost} was lost. The script continues in a new one, from what is recorded.`,
    written.length === 0 ? "" : `Files written again from the record:\n${listed(written)}`,
    repeats.length === 0
      ? ""
      : `Steps executed again, in this order, because they were running or because what they changed was not saved:\n${listed(repeats)}`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

const listed = (calls: readonly PastCall[]): string =>
  [
    ...calls.slice(0, NAMED_MAX).map(titleOf),
    ...(calls.length > NAMED_MAX ? [`and ${calls.length - NAMED_MAX} more`] : []),
  ]
    .map((line) => `- ${line}`)
    .join("\n");

const titleOf = ({ name, input }: PastCall): string => {
  const [main] = ["command", "path", "title"].map((key) => input[key]).filter((value) => typeof value === "string");
  return main === undefined ? name : `${name}: ${main.slice(0, 200)}`;
};

import type { Clock } from "@millwright/clock";
import type { ModelStep, ToolCall } from "../model/model-provider.ts";
import { pullRequest } from "../tools/pull-request.ts";
import type { Tool, ToolContext, TurnEnd } from "../tools/tool.ts";
import type { Saving } from "../workspace/checkpoints.ts";
import { closeUnrun, isAllowed, runTool, type Ending } from "../tools/run-tool.ts";

export type TakeStepDeps = {
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, "callId">;
  readonly mode: string;
  readonly clock: Clock;
  readonly checkpoints: Saving;
  /** Returns a text as it is stored in events. */
  readonly mask: (text: string) => string;
};

/** The maximum number of concurrent read-only calls. */
const PARALLEL_MAX = 8;

/**
 * Runs the calls of a step: read-only calls concurrently, all others sequentially. Before a call that changes the
 * workspace, earlier changes are saved. Returns the end of the turn, if any; later calls are then closed without
 * running. Throws the errors of `runTool`.
 */
export async function takeStep(deps: TakeStepDeps, { toolCalls, next }: ModelStep): Promise<TurnEnd | undefined> {
  const { signal } = deps.context;
  const isStoredVerbatim = areStoredVerbatim(toolCalls, deps.mask);
  let left = [...toolCalls];
  while (left.length > 0) {
    const group = nextGroup(deps, left);
    left = left.slice(group.length);
    const endings = await runGroup(deps, group).finally(() => markChanges(deps, group, isStoredVerbatim));
    const end = endings.find((ending) => ending.end)?.end;
    if (!signal.aborted && !end) continue;
    for (const call of left) closeUnrun(call, deps);
    return end ?? { kind: "interrupted" };
  }
  if (signal.aborted) return { kind: "interrupted" };
  return next.kind === "continue" ? undefined : next;
}

function nextGroup({ tools, mode }: TakeStepDeps, calls: readonly ToolCall[]): readonly ToolCall[] {
  const isParallel = ({ name }: ToolCall) =>
    tools.some((tool) => tool.name === name && tool.isParallel === true && isAllowed(tool, mode));
  const first = calls.findIndex((call) => !isParallel(call));
  const parallelCount = first < 0 ? calls.length : first;
  return calls.slice(0, Math.max(1, Math.min(parallelCount, PARALLEL_MAX)));
}

async function runGroup(deps: TakeStepDeps, group: readonly ToolCall[]): Promise<Ending[]> {
  const { tools, context, mode, clock } = deps;
  const changes = group.length === 1 ? tools.find(({ name }) => name === group[0]?.name)?.changes : undefined;
  if (changes && changes !== "nothing") await deps.checkpoints.save();
  const settled = await Promise.allSettled(group.map((call) => runTool(call, { tools, context, mode, clock })));
  const failed = settled.find((outcome) => outcome.status === "rejected");
  // only after all calls of the group have ended, so that nothing continues to run
  if (failed) throw failed.reason as Error;
  return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

/** The maximum size of the calls in a step's event, which leaves space for its other fields. */
const STORED_BYTES_MAX = 60 * 1024;

/** Returns whether the events contain the calls verbatim. Otherwise they cannot be repeated. */
function areStoredVerbatim(calls: readonly ToolCall[], mask: (text: string) => string): boolean {
  const text = JSON.stringify(calls);
  return Buffer.byteLength(text) <= STORED_BYTES_MAX && mask(text) === text;
}

function markChanges(
  { tools, checkpoints }: TakeStepDeps,
  group: readonly ToolCall[],
  isStoredVerbatim: boolean,
): void {
  for (const { name } of group) {
    const tool = tools.find((candidate) => candidate.name === name);
    if (tool?.changes === "anything" || (tool?.changes === "files" && !isStoredVerbatim))
      checkpoints.note(tool === pullRequest ? "always" : "if_cheap");
  }
}

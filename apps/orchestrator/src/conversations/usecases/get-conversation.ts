import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { stepsOf, type ChildRun, type Step } from "../domain/conversation-view.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { ListSharedRuns } from "../../runs/domain/session-sharing.ts";
import { readAllEvents, type ListRunEvents } from "../../runs/usecases/read-all-events.ts";

export type GetConversationDeps = {
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  /** Returns a run regardless of the caller. */
  readonly findRun: (uid: string) => Promise<Run | undefined>;
  readonly listSharedRuns: ListSharedRuns;
  /** Returns the visible runs of a conversation, oldest first. */
  readonly listOfConversation: (caller: Caller, conversationUid: string) => Promise<readonly Run[]>;
  /** Returns the visible children of runs, oldest first. */
  readonly listChildren: (caller: Caller, parentUids: readonly string[], limit: number) => Promise<readonly Run[]>;
  readonly listRunEvents: ListRunEvents;
};

export type ConversationTarget = { readonly runUid: string } | { readonly conversationUid: string };

/**
 * Maximum number of nested runs in one response. The youngest runs of a larger tree are left out; each can be read as a
 * conversation of its own.
 */
const RUNS_MAX = 200;

/**
 * Returns the steps of a run, or of all visible runs of a conversation. Visible child runs are nested in the steps that
 * created them. A run that has not started has no steps. A caller that may see none of the runs receives those that the
 * conversation's link opens.
 *
 * Errors: run_not_found · conversation_not_found.
 */
export async function getConversation(
  deps: GetConversationDeps,
  caller: Caller,
  target: ConversationTarget,
): Promise<{ conversationUid: string; steps: Step[] }> {
  const runs =
    "runUid" in target ? await oneRun(deps, caller, target.runUid) : await runsOf(deps, caller, target.conversationUid);
  const [first] = runs;
  if (!first) throw notFound("runUid" in target ? "run" : "conversation");
  const below = await descendantsOf(deps, caller, runs);
  const steps: Step[] = [];
  for (const run of runs) steps.push(...(await stepsOfRun(deps, run, below)));
  return { conversationUid: first.conversationUid, steps };
}

async function runsOf(deps: GetConversationDeps, caller: Caller, conversationUid: string): Promise<readonly Run[]> {
  const visible = await deps.listOfConversation(caller, conversationUid);
  return visible.length > 0 ? visible : deps.listSharedRuns(caller, conversationUid, "view");
}

async function oneRun(deps: GetConversationDeps, caller: Caller, runUid: string): Promise<readonly Run[]> {
  const visible = await deps.findVisibleRun(caller, runUid);
  if (visible) return [visible];
  const run = await deps.findRun(runUid);
  return run
    ? (await deps.listSharedRuns(caller, run.conversationUid, "view")).filter(({ uid }) => uid === run.uid)
    : [];
}

async function descendantsOf(deps: GetConversationDeps, caller: Caller, roots: readonly Run[]): Promise<Run[]> {
  const seen = new Set<string>(roots.map((run) => run.uid));
  const found: Run[] = [];
  for (let level = [...roots]; level.length > 0 && found.length < RUNS_MAX;) {
    const parents = level.map((run) => run.uid);
    // A run that belongs to the conversation itself is shown at the top level, not nested.
    level = (await deps.listChildren(caller, parents, RUNS_MAX - found.length)).filter((run) => !seen.has(run.uid));
    for (const run of level) seen.add(run.uid);
    found.push(...level);
  }
  return found;
}

async function stepsOfRun(deps: GetConversationDeps, run: Run, below: readonly Run[]): Promise<Step[]> {
  const children: ChildRun[] = [];
  for (const child of below.filter(({ parentRunUid }) => parentRunUid === run.uid)) {
    children.push({
      runUid: child.uid,
      title: child.title,
      summary: summaryOf(child),
      steps: await stepsOfRun(deps, child, below),
    });
  }
  return stepsOf(await readAllEvents(deps.listRunEvents, run.uid), children);
}

const summaryOf = ({ state, status }: Run): string => (status ? `${state}: ${status.message}` : state);

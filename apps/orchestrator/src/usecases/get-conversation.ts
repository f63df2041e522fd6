import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { stepsOf, type ChildRun, type Step } from "../domain/conversation-view.ts";
import type { Run } from "../domain/run.ts";
import type { ListOpenRuns } from "../domain/session-sharing.ts";
import { readAllEvents, type ListRunEvents } from "./read-all-events.ts";

export type GetConversationDeps = {
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  /** A run, whoever asks. */
  readonly findRun: (uid: string) => Promise<Run | undefined>;
  readonly listOpenRuns: ListOpenRuns;
  /** Visible runs that serve a conversation, oldest first. */
  readonly listOfConversation: (caller: Caller, conversationUid: string) => Promise<readonly Run[]>;
  /** Visible children, oldest first. */
  readonly listChildren: (caller: Caller, parentUids: readonly string[], limit: number) => Promise<readonly Run[]>;
  readonly listRunEvents: ListRunEvents;
};

export type ConversationTarget = { readonly runUid: string } | { readonly conversationUid: string };

/** How many runs one answer shows; beyond it, a tree's youngest runs are left to conversations of their own. */
const RUNS_MAX = 200;

/**
 * What was said and done in a run, or in all visible runs of a conversation, with the runs they made nested where they were
 * made, if these are visible. A run that has not begun has no steps (spec/decisions). Who sees none of it sees what is open to its link.
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
  return visible.length > 0 ? visible : deps.listOpenRuns(caller, conversationUid, "view");
}

async function oneRun(deps: GetConversationDeps, caller: Caller, runUid: string): Promise<readonly Run[]> {
  const visible = await deps.findVisibleRun(caller, runUid);
  if (visible) return [visible];
  const run = await deps.findRun(runUid);
  return run ? (await deps.listOpenRuns(caller, run.conversationUid, "view")).filter(({ uid }) => uid === run.uid) : [];
}

async function descendantsOf(deps: GetConversationDeps, caller: Caller, roots: readonly Run[]): Promise<Run[]> {
  const seen = new Set<string>(roots.map((run) => run.uid));
  const found: Run[] = [];
  for (let level = [...roots]; level.length > 0 && found.length < RUNS_MAX;) {
    const parents = level.map((run) => run.uid);
    // A run that itself continues this conversation is shown as such, not nested.
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

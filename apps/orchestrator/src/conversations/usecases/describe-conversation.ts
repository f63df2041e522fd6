import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import type { Run } from "../../runs/domain/run.ts";

export type DescribeConversationDeps = {
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  /** Returns the visible runs of a conversation, oldest first. */
  readonly listOfConversation: (caller: Caller, conversationUid: string) => Promise<readonly Run[]>;
  /** Returns these runs and every visible run below them. */
  readonly listTreeUids: (caller: Caller, uids: readonly string[]) => Promise<readonly string[]>;
  /** Returns the artifacts of runs, oldest first. */
  readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
};

export type ConversationDescription = {
  readonly conversationUid: string;
  readonly newestRun: Run;
  readonly firstRun: Run;
  readonly outputs: readonly Artifact[];
};

/**
 * Returns the data of a factory task's conversation: its current (newest top-level) run, its first run, and the outputs
 * of the whole trees of its runs, newest first. Plans are not outputs. If the target is a run, the conversation is that
 * of its root run. With a team, only runs that the team owns count.
 *
 * Errors: conversation_not_found (absent, or none of its runs is visible).
 */
export async function describeConversation(
  deps: DescribeConversationDeps,
  caller: Caller,
  target: ({ conversationUid: string } | { runUid: string }) & { teamUid?: string | undefined },
): Promise<ConversationDescription> {
  const conversationUid =
    "conversationUid" in target ? target.conversationUid : await conversationOf(deps, caller, target.runUid);
  const visible = conversationUid === undefined ? [] : await deps.listOfConversation(caller, conversationUid);
  const { teamUid } = target;
  const runs =
    teamUid === undefined ? visible : visible.filter(({ owner }) => owner.type === "team" && owner.uid === teamUid);
  const [firstRun, newestRun] = [
    runs[0],
    runs.findLast(({ parentRunUid }) => parentRunUid === undefined) ?? runs.at(-1),
  ];
  if (!firstRun || !newestRun) throw notFound("conversation");
  const tree = await deps.listTreeUids(
    caller,
    runs.map(({ uid }) => uid),
  );
  const artifacts = await deps.artifactsOfRuns(tree);
  return {
    conversationUid: firstRun.conversationUid,
    newestRun,
    firstRun,
    outputs: artifacts.filter(({ type }) => type !== "PLAN").reverse(),
  };
}

async function conversationOf(
  deps: DescribeConversationDeps,
  caller: Caller,
  runUid: string,
): Promise<string | undefined> {
  const run = await deps.findVisibleRun(caller, runUid);
  if (!run || run.uid === run.rootRunUid) return run?.conversationUid;
  return (await deps.findVisibleRun(caller, run.rootRunUid))?.conversationUid;
}

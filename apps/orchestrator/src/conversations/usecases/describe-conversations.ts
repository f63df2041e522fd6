import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import type { Run } from "../../runs/domain/run.ts";
import { canSee } from "../../runs/domain/run-visibility.ts";

export type DescribeConversationsDeps = {
  /**
   * Returns the current run of each conversation regardless of the caller; with a team, of the runs that the team owns.
   */
  readonly currentRunsOfConversations: (
    conversationUids: readonly string[],
    teamUid: string | undefined,
  ) => Promise<readonly Run[]>;
  readonly listOfConversations: (
    caller: Caller,
    conversationUids: readonly string[],
    teamUid: string | undefined,
  ) => Promise<readonly { readonly uid: string; readonly conversationUid: string }[]>;
  /** Returns the artifacts of runs, oldest first. */
  readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
};

export type ConversationState = {
  readonly run: Run;
  readonly isVisible: boolean;
  readonly outputs: readonly Artifact[];
};

export type ConversationsQuery = {
  readonly conversationUids: readonly string[];
  readonly withOutputs: boolean;
  /**
   * Only runs of this team count: a personal run in a team's conversation does not show the state of the team's work.
   */
  readonly teamUid?: string | undefined;
};

const CONVERSATIONS_MAX = 100;

/**
 * Returns the current (newest top-level) run of each conversation and, with `withOutputs`, the outputs of the
 * conversation's visible runs, newest first. Uses a fixed number of queries for any number of conversations.
 *
 * Errors: too_many_conversations.
 */
export async function describeConversations(
  deps: DescribeConversationsDeps,
  caller: Caller,
  query: ConversationsQuery,
): Promise<ConversationState[]> {
  const { conversationUids, withOutputs, teamUid } = query;
  if (conversationUids.length > CONVERSATIONS_MAX)
    throw invalidArgument(
      "too_many_conversations",
      `conversation_uids must have at most ${CONVERSATIONS_MAX} entries (got ${conversationUids.length}).`,
    );
  const [current, bound] = await Promise.all([
    deps.currentRunsOfConversations(conversationUids, teamUid),
    withOutputs ? deps.listOfConversations(caller, conversationUids, teamUid) : [],
  ]);
  const outputs = (await deps.artifactsOfRuns(bound.map(({ uid }) => uid)))
    .filter(({ type }) => type !== "PLAN")
    .reverse();
  const conversationOf = new Map(bound.map(({ uid, conversationUid }) => [uid, conversationUid]));
  return current.map((run) => ({
    run,
    isVisible: canSee(caller, run),
    outputs: outputs.filter(({ runUid }) => conversationOf.get(runUid) === run.conversationUid),
  }));
}

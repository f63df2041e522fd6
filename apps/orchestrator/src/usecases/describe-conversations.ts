import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { Artifact } from "../domain/artifact.ts";
import type { Run } from "../domain/run.ts";
import { canSee } from "../domain/run-visibility.ts";

export type DescribeConversationsDeps = {
  /** Whoever may see them; with a team, those of the team. */
  readonly currentRunsOfConversations: (
    conversationUids: readonly string[],
    teamUid: string | undefined,
  ) => Promise<readonly Run[]>;
  readonly listOfConversations: (
    caller: Caller,
    conversationUids: readonly string[],
    teamUid: string | undefined,
  ) => Promise<readonly { readonly uid: string; readonly conversationUid: string }[]>;
  /** Oldest first. */
  readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
};

export type ConversationStanding = {
  readonly run: Run;
  readonly isVisible: boolean;
  readonly outputs: readonly Artifact[];
};

export type ConversationsAsked = {
  readonly conversationUids: readonly string[];
  readonly withOutputs: boolean;
  /** Only runs of this team count: somebody's personal run in a team's conversation says nothing about the team's work. */
  readonly teamUid?: string | undefined;
};

const CONVERSATIONS_MAX = 100;

/**
 * Where conversations stand: the current (newest top-level) run of each, and, when asked, the outputs of the visible runs bound to it, newest
 * first. A fixed number of queries, however many conversations.
 *
 * Errors: too_many_conversations. Source: fields-factory §2.2, §2.4.
 */
export async function describeConversations(
  deps: DescribeConversationsDeps,
  caller: Caller,
  asked: ConversationsAsked,
): Promise<ConversationStanding[]> {
  const { conversationUids, withOutputs, teamUid } = asked;
  if (conversationUids.length > CONVERSATIONS_MAX)
    throw invalidArgument("too_many_conversations", `At most ${CONVERSATIONS_MAX} conversations at once.`);
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

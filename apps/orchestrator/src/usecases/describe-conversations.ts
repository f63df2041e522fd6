import { actorOf, teamsWith, type Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { Artifact } from "../domain/artifact.ts";
import type { Run } from "../domain/run.ts";

export type DescribeConversationsDeps = {
  /** Whoever may see them. */
  readonly newestOfConversations: (conversationUids: readonly string[]) => Promise<readonly Run[]>;
  readonly listOfConversations: (caller: Caller, conversationUids: readonly string[]) => Promise<readonly { readonly uid: string; readonly conversationUid: string }[]>;
  /** Oldest first. */
  readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
};

export type ConversationStanding = { readonly run: Run; readonly isVisible: boolean; readonly outputs: readonly Artifact[] };

const CONVERSATIONS_MAX = 100;

/**
 * Where conversations stand: the newest run of each, and, when asked, the outputs of the visible runs bound to it, newest
 * first. A fixed number of queries, however many conversations.
 *
 * Errors: too_many_conversations. Source: fields-factory §2.2, §2.4.
 */
export async function describeConversations(deps: DescribeConversationsDeps, caller: Caller, conversationUids: readonly string[], withOutputs: boolean): Promise<ConversationStanding[]> {
  if (conversationUids.length > CONVERSATIONS_MAX) throw invalidArgument("too_many_conversations", `At most ${CONVERSATIONS_MAX} conversations at once.`);
  const [newest, bound] = await Promise.all([deps.newestOfConversations(conversationUids), withOutputs ? deps.listOfConversations(caller, conversationUids) : []]);
  const outputs = (await deps.artifactsOfRuns(bound.map(({ uid }) => uid))).filter(({ type }) => type !== "PLAN").reverse();
  const conversationOf = new Map(bound.map(({ uid, conversationUid }) => [uid, conversationUid]));
  return newest.map((run) => ({ run, isVisible: isVisible(caller, run), outputs: outputs.filter(({ runUid }) => conversationOf.get(runUid) === run.conversationUid) }));
}

const isVisible = (caller: Caller, { owner }: Run): boolean =>
  owner.type === "team" ? teamsWith(caller, "run.view").some((uid) => uid === owner.uid) : actorOf(caller).uid === owner.uid;

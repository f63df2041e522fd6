import { serviceCaller, type Caller } from "@millwright/caller";
import { isDomainError, notFound } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import type { CodeHost } from "../../catalog/domain/code-host.ts";
import { conversationJson, finalMessage } from "../domain/evidence-conversation.ts";
import { editDiffs, joinDiffs } from "../domain/evidence-diff.ts";
import type { PullRequest } from "../../catalog/domain/pull-request.ts";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { Owner, Run } from "../../runs/domain/run.ts";
import type { ScoredRun } from "../domain/scored-run.ts";
import { withDetails, type ScoredRunDetailsDeps, type StoredRun } from "./describe-scored-runs.ts";
import { getConversation, type GetConversationDeps } from "../../conversations/usecases/get-conversation.ts";
import type { OpenCodeHosts } from "../../catalog/usecases/open-code-host.ts";

export type GetRunEvidenceDeps = ScoredRunDetailsDeps &
  GetConversationDeps & {
    /** Returns a run regardless of the caller. */
    readonly findScoredRun: (uid: string) => Promise<StoredRun | undefined>;
    readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
    /** Returns the pull requests of runs, oldest first. */
    readonly pullRequestsOfRuns: (runUids: readonly string[]) => Promise<readonly PullRequest[]>;
    readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
    readonly identity: {
      resolveSecrets(
        caller: Caller,
        teamUid: string,
        names: readonly string[],
        optionalNames: readonly string[],
      ): Promise<Readonly<Record<string, string>>>;
    };
    readonly openCodeHost: OpenCodeHosts;
  };

export type RunEvidence = {
  readonly run: ScoredRun;
  readonly prompt: string;
  readonly finalMessage: string;
  readonly conversationJson: string;
  readonly diff: string;
  readonly artifacts: readonly Artifact[];
};

/**
 * Returns what a judge may read of a run: its prompt, its conversation including the runs below it, and the changes and
 * artifacts of all of these. The events of each run are read once; everything else takes a fixed number of queries.
 * Diffs of pull requests on a code host are read from there.
 *
 * Errors: run_not_found · those of the code host if it cannot be read.
 */
export async function getRunEvidence(deps: GetRunEvidenceDeps, runUid: string): Promise<RunEvidence> {
  const stored = await deps.findScoredRun(runUid);
  if (!stored) throw notFound("run");
  const { run } = stored;
  const events = new Map<string, RunEvent[]>();
  const collectEvents = async (uid: string, afterSeq: number, limit: number): Promise<readonly RunEvent[]> => {
    const read = await deps.listRunEvents(uid, afterSeq, limit);
    events.set(uid, [...(events.get(uid) ?? []), ...read]);
    return read;
  };
  const { conversationUid, steps } = await getConversation(
    { ...deps, listRunEvents: collectEvents },
    readerOf(run.owner),
    { runUid: run.uid },
  );
  const uids = [...events.keys()];
  const [[described], artifacts, pullRequests] = await Promise.all([
    withDetails(deps, [stored]),
    deps.artifactsOfRuns(uids),
    deps.pullRequestsOfRuns(uids),
  ]);
  const edits = [...events.values()]
    .flat()
    .toSorted((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || a.seq - b.seq);
  return {
    run: described!,
    prompt: run.submittedPrompt ?? run.prompt,
    finalMessage: finalMessage(steps),
    conversationJson: conversationJson(conversationUid, steps),
    diff: joinDiffs([
      ...(await pullRequestDiffs(deps, run, pullRequests)),
      { title: "Edits by the agent, in their order", text: editDiffs(edits) },
    ]),
    artifacts,
  };
}

/** Returns a caller that may see what the owner's members may see. */
function readerOf({ type, uid }: Owner): Caller {
  if (type === "team")
    return serviceCaller("orchestrator", newUid(), undefined, [{ teamUid: uid as TeamUid, verbs: ["run.view"] }]);
  return { ...serviceCaller("orchestrator", newUid(), { type: "user", uid }), personal: ["run.view"] };
}

async function pullRequestDiffs(
  deps: GetRunEvidenceDeps,
  { owner }: Run,
  pullRequests: readonly PullRequest[],
): Promise<{ title: string; text: string }[]> {
  if (pullRequests.length === 0 || owner.type !== "team") return [];
  const hosts = await deps.codeHosts.list([owner.uid as TeamUid]);
  const secrets = [...new Set(hosts.flatMap(({ secretName }) => secretName || []))];
  const values = await deps.identity.resolveSecrets(serviceCaller("orchestrator", newUid()), owner.uid, [], secrets);
  return Promise.all(
    pullRequests.map(async (pull) => {
      const host = hosts.find(({ uid }) => uid === pull.codeHostUid);
      return {
        title: `Pull request ${pull.owner}/${pull.repo}#${pull.number}: ${pull.title}`,
        text: host ? await diffOf(deps, host, values[host.secretName] ?? "", pull) : "",
      };
    }),
  );
}

/** Returns the diff of a pull request, or "" if it no longer exists on its host. */
async function diffOf(
  deps: GetRunEvidenceDeps,
  host: CodeHost,
  token: string,
  { owner, repo, number, baseSha, headSha }: PullRequest,
): Promise<string> {
  const opened = deps.openCodeHost(host, token);
  try {
    if (opened.kind === "local") return (await opened.host.diff({ owner, repo }, baseSha, headSha)).text;
    return (await opened.host.diffPullRequest({ owner, repo }, number)) ?? "";
  } catch (error) {
    if (isDomainError(error) && error.kind === "not_found") return "";
    throw error;
  }
}

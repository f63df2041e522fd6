import type { ArtifactUid, RunUid } from "@millwright/ids";

/** A pull request opened for a run: unique per run, repository and head branch. */
export type PullRequest = {
  readonly uid: string;
  readonly runUid: RunUid;
  readonly codeHostUid: string;
  readonly kind: "github" | "gitlab" | "local";
  readonly owner: string;
  readonly repo: string;
  readonly number: number;
  readonly url: string;
  readonly title: string;
  readonly body: string;
  readonly headBranch: string;
  readonly baseBranch: string;
  readonly headSha: string;
  /** local: the commit that the base branch and the head have in common, so that the diff stays when the base moves on. */
  readonly baseSha: string;
  readonly status: "open" | "draft" | "merged" | "closed" | "unknown";
  readonly artifactUid: ArtifactUid;
  readonly createdAt: Date;
};

/** The one branch a run may commit to and open a pull request from. */
export const workBranchOf = (runUid: string): string => `agent/${runUid}`;

/** Bounds of what an agent writes about its pull request; ours. */
export const PULL_REQUEST_LIMITS = { titleMax: 256, bodyMax: 65_536 } as const;

/** The page of a local pull request, within its run's pages. */
export const localPullRequestUrl = (publicUrl: string, runUid: string, uid: string): string =>
  `${publicUrl}/runs/${runUid}/pull-requests/${uid}`;

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
  /**
   * local: the common ancestor of the base branch and the head, so that the diff does not change when the base branch
   * does.
   */
  readonly baseSha: string;
  readonly status: "open" | "draft" | "merged" | "closed" | "unknown";
  readonly artifactUid: ArtifactUid;
  readonly createdAt: Date;
};

/** Numbers of lines, files and commits that a pull request changes. */
export type PullRequestSize = {
  readonly additions: number;
  readonly deletions: number;
  readonly changedFiles: number;
  readonly numCommits: number;
};

/** Returns the only branch that a run may commit to and open a pull request from. */
export const workBranchOf = (runUid: string): string => `agent/${runUid}`;

/** Limits of an agent's pull request, in characters. */
export const PULL_REQUEST_LIMITS = { titleMax: 256, bodyMax: 65_536 } as const;

/** Returns the URL of a local pull request's page, which is below the page of its run. */
export const localPullRequestUrl = (publicUrl: string, runUid: string, uid: string): string =>
  `${publicUrl}/runs/${runUid}/pull-requests/${uid}`;

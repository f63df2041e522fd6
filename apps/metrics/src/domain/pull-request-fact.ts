/** What one delivery of a code host reports of a pull request. Times are by the clock of the code host. */
export type PullRequestFact = {
  readonly provider: "GITHUB" | "GITLAB" | "LOCAL";
  readonly url: string;
  readonly repoFullName: string;
  readonly prNumber: number;
  /** Decides which of two facts is newer. */
  readonly updatedAt: Date;
  /** Null: not reported. The following three never change. */
  readonly authorLogin: string | null;
  readonly openedAt: Date | null;
  readonly mergedAt: Date | null;
  /** Null: not reported, or not unambiguously. */
  readonly status: { readonly state: PullRequestState; readonly title: string; readonly closedAt: Date | null } | null;
  /** Null: not reported. */
  readonly size: PullRequestSize | null;
};

export type PullRequestState = "open" | "draft" | "merged" | "closed";

export type PullRequestSize = {
  readonly additions: number;
  readonly deletions: number;
  readonly changedFiles: number;
  readonly numCommits: number;
};

/** The counters of `human_interactions` that activities are counted in. */
export type ActivityKind =
  | "opened"
  | "code_push"
  | "review_approved"
  | "review_changes_requested"
  | "review_commented"
  | "comment"
  | "review_comment"
  | "pr_action";

/** Something that a person or a program did to a pull request. */
export type Activity = {
  /** Derived from what the code host calls it, so that a repeated delivery gives the same one. */
  readonly key: string;
  readonly kind: ActivityKind;
  readonly actorLogin: string;
  /** Neither a bot nor an app that acts for a person. */
  readonly isPerson: boolean;
  /** Only that the review was dismissed is known for certain: its kind may be another. */
  readonly isDismissed: boolean;
  readonly occurredAt: Date;
  /** A delivery does not name it, only its time. Reading the history from the code host replaces it. */
  readonly isApproximate?: boolean;
};

export type PullRequestFacts = {
  readonly pullRequest: PullRequestFact;
  readonly activities: readonly Activity[];
  /**
   * All activities until then are among these, of the kinds that deliveries report approximately. By the clock of the code
   * host; absent: none of them are, so that deliveries count.
   */
  readonly historyReadTo?: Date | undefined;
};

/** The elements of a list of the code host; undefined: it cannot be read, or is too long to be complete. */
export type ReadList = readonly unknown[] | undefined;

/** Facts of a pull request, as they were reported to a team. */
export type ReportedFacts = { readonly teamUid: string; readonly facts: PullRequestFacts };

const URL_LENGTH_MAX = 1000;
const NAME_LENGTH_MAX = 500;
const INT4_MAX = 2_147_483_647;

/** Returns whether a pull request can be stored under its address. A payload may contain anything. */
export const isAddress = (url: string, repoFullName: string, prNumber: number | undefined): prNumber is number =>
  /^https?:\/\/[^/]/i.test(url) &&
  url.length <= URL_LENGTH_MAX &&
  !url.includes("\0") &&
  repoFullName !== "" &&
  repoFullName.length <= NAME_LENGTH_MAX &&
  !repoFullName.includes("\0") &&
  prNumber !== undefined &&
  prNumber > 0 &&
  prNumber <= INT4_MAX;

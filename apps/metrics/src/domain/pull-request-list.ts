export const PULL_REQUEST_STATES = ["open", "draft", "merged", "closed"] as const;

/** Which pull requests are listed. Times are exclusive bounds; a pull request without the time is outside of them. */
export type PullRequestFilter = {
  /** owner/repo, in any case; "" = all. */
  readonly repo: string;
  /** Empty = all. */
  readonly states: readonly string[];
  readonly openedAfter?: Date | undefined;
  readonly openedBefore?: Date | undefined;
  readonly mergedAfter?: Date | undefined;
  readonly mergedBefore?: Date | undefined;
  readonly updatedAfter?: Date | undefined;
};

/** The last pull request of a page. `openedAt` null: its opening is not known. */
export type PullRequestPosition = { readonly openedAt: Date | null; readonly urlKey: string };

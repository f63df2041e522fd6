/** From small to large. */
export const PULL_REQUEST_SIZES = ["S", "M", "L", "XL"] as const;
export type PullRequestSize = (typeof PULL_REQUEST_SIZES)[number];

/** Changed lines (additions + deletions) from which a pull request is of the second, third and fourth size. */
export const SIZE_LINES_MIN: readonly number[] = [100, 500, 1000];

/** When the stages of a pull request begin and end; null: not known, or not yet. */
export type Milestones = {
  readonly kickoffAt: Date;
  readonly openedAt: Date | null;
  readonly firstHumanReviewAt: Date | null;
  readonly mergedAt: Date | null;
};

/** Seconds per stage. Undefined: an end is missing, or the stage is negative and so was not measured. */
export type CycleTime = {
  readonly kickoffToPr: number | undefined;
  readonly prToFirstReview: number | undefined;
  readonly firstReviewToMerge: number | undefined;
  readonly kickoffToMerge: number | undefined;
};

/** Returns how long each stage of a pull request took. */
export const cycleTime = ({ kickoffAt, openedAt, firstHumanReviewAt, mergedAt }: Milestones): CycleTime => ({
  kickoffToPr: secondsBetween(kickoffAt, openedAt),
  prToFirstReview: secondsBetween(openedAt, firstHumanReviewAt),
  firstReviewToMerge: secondsBetween(firstHumanReviewAt, mergedAt),
  kickoffToMerge: secondsBetween(kickoffAt, mergedAt),
});

/** A review before the opening and clocks that differ give negative stages. */
function secondsBetween(start: Date | null, end: Date | null): number | undefined {
  if (!start || !end || end < start) return undefined;
  return (end.getTime() - start.getTime()) / 1000;
}

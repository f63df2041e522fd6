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

/** When each stage begins and ends. */
export const STAGES = {
  kickoffToPr: ["kickoffAt", "openedAt"],
  prToFirstReview: ["openedAt", "firstHumanReviewAt"],
  firstReviewToMerge: ["firstHumanReviewAt", "mergedAt"],
  kickoffToMerge: ["kickoffAt", "mergedAt"],
} as const satisfies Record<keyof CycleTime, readonly [keyof Milestones, keyof Milestones]>;

/** Returns how long each stage of a pull request took. */
export const cycleTime = (milestones: Milestones): CycleTime => ({
  kickoffToPr: secondsOf(milestones, STAGES.kickoffToPr),
  prToFirstReview: secondsOf(milestones, STAGES.prToFirstReview),
  firstReviewToMerge: secondsOf(milestones, STAGES.firstReviewToMerge),
  kickoffToMerge: secondsOf(milestones, STAGES.kickoffToMerge),
});

/** Stages are negative if a review precedes the opening, or if clocks differ. */
function secondsOf(
  milestones: Milestones,
  [from, to]: readonly [keyof Milestones, keyof Milestones],
): number | undefined {
  const [start, end] = [milestones[from], milestones[to]];
  if (!start || !end || end < start) return undefined;
  return (end.getTime() - start.getTime()) / 1000;
}

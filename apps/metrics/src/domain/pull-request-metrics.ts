/** Pull requests by when they were opened, or merged if their opening was not observed. */
export type OpenedCohort = {
  /** How many of them have merged by now. */
  readonly merged: number;
  /** Interactions of persons with those of known opening and known facts of the code host, and how many those are. */
  readonly interactions: number;
  readonly measured: number;
};

/** `medianSeconds`: null if nothing was measured. */
export type LatencyStage = { readonly medianSeconds: number | null; readonly measured: number };

/** The factory's pull requests by when they merged. */
export type Merges = {
  readonly merged: number;
  readonly observed: number;
  /** Of those observed. */
  readonly withoutHumanCodeChange: number;
  /** Lines over the pull requests whose both line counts are known. */
  readonly additions: number;
  readonly deletions: number;
  readonly sized: number;
  readonly kickoffToPr: LatencyStage;
  readonly prToFirstReview: LatencyStage;
  readonly firstReviewToMerge: LatencyStage;
  readonly kickoffToMerge: LatencyStage;
};

const NO_COHORT: OpenedCohort = { merged: 0, interactions: 0, measured: 0 };

const UNMEASURED: LatencyStage = { medianSeconds: null, measured: 0 };
export const NO_MERGES: Merges = {
  merged: 0,
  observed: 0,
  withoutHumanCodeChange: 0,
  additions: 0,
  deletions: 0,
  sized: 0,
  kickoffToPr: UNMEASURED,
  prToFirstReview: UNMEASURED,
  firstReviewToMerge: UNMEASURED,
  kickoffToMerge: UNMEASURED,
};

/** Returns the mean of persons' interactions per pull request; null if none was measured. */
export const meanInteractions = ({
  interactions,
  measured,
}: Pick<OpenedCohort, "interactions" | "measured">): number | null => (measured === 0 ? null : interactions / measured);

/** Returns the sum of cohorts. */
export const sumCohorts = (cohorts: readonly OpenedCohort[]): OpenedCohort =>
  cohorts.reduce(
    (sum, { merged, interactions, measured }) => ({
      merged: sum.merged + merged,
      interactions: sum.interactions + interactions,
      measured: sum.measured + measured,
    }),
    NO_COHORT,
  );

/** Returns repositories once each, whatever the case of their names, in alphabetical order. The first spelling wins. */
export function mergeRepositories(...lists: readonly (readonly string[])[]): string[] {
  const byKey = new Map<string, string>();
  for (const repository of lists.flat()) {
    const key = repository.toLowerCase();
    if (key !== "" && !byKey.has(key)) byKey.set(key, repository);
  }
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, repository]) => repository);
}

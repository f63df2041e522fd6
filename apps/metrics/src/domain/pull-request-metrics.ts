/** Pull requests by when they were opened, or merged if their opening was not observed. */
export type OpenedCohort = {
  /** How many of them have merged by now. */
  readonly merged: number;
  /**
   * Interactions of people with the pull requests whose opening and facts are known, and the number of these pull
   * requests.
   */
  readonly interactions: number;
  readonly measured: number;
};

const NO_COHORT: OpenedCohort = { merged: 0, interactions: 0, measured: 0 };

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

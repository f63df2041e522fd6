import type { ActivityRow, HostRow, ProducedRow, RecordRow, RunRow } from "./run-rows.ts";

/** Everything that has happened, as plain lists: expected responses are computed from them. */
export type History = {
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly repositories: readonly string[];
  readonly runs: readonly RunRow[];
  readonly produced: readonly ProducedRow[];
  readonly hostFacts: readonly HostRow[];
  readonly activities: readonly ActivityRow[];
};

const HOUR_MS = 3_600_000;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const earliest = (times: readonly Date[]): Date | null =>
  times.length === 0 ? null : times.reduce((first, at) => (at < first ? at : first));

const knownLabels = new Map<string, Map<number, string>>();

/** Returns the first day of the day, week or month of an instant. */
function labelOf(at: Date, unit: string): string {
  const known = knownLabels.get(unit) ?? new Map<number, string>();
  knownLabels.set(unit, known);
  const label = known.get(at.getTime()) ?? computeLabel(at, unit);
  known.set(at.getTime(), label);
  return label;
}

function computeLabel(at: Date, unit: string): string {
  const day = new Date(`${at.toISOString().slice(0, 10)}T00:00:00Z`);
  if (unit === "month") return `${day.toISOString().slice(0, 7)}-01`;
  if (unit === "week") while (day.getUTCDay() !== 0) day.setTime(day.getTime() - 24 * HOUR_MS);
  return day.toISOString().slice(0, 10);
}

/** Returns the labels of all periods that [start, end) touches: it is walked through hour by hour. */
function labelsOf(start: Date, end: Date, unit: string): string[] {
  const labels = new Set<string>();
  for (let at = start.getTime(); at < end.getTime(); at += HOUR_MS) labels.add(labelOf(new Date(at), unit));
  return [...labels.add(labelOf(new Date(end.getTime() - 1), unit))];
}

type Slice<T> = { total: T; series: T[] };

/** Computes something of the whole range and of each period. */
function slices<T>(start: Date, end: Date, unit: string, compute: (isIn: (at: Date | null) => boolean) => T): Slice<T> {
  const inRange = (at: Date | null): at is Date => at !== null && at >= start && at < end;
  const labels = unit === "" ? [] : labelsOf(start, end, unit);
  return {
    total: compute(inRange),
    series: labels.map((label) => compute((at) => inRange(at) && labelOf(at, unit) === label)),
  };
}

/** Returns the run breakdown that a history has. */
export function recomputeBreakdown(
  { factoryUid, runs }: History,
  start: Date,
  end: Date,
  unit: string,
  groupBy: string,
) {
  const ours = runs.filter(
    (run) => run.factory_uid === factoryUid && (groupBy !== "source" || run.parent_run_uid === null),
  );
  const roots = runs.filter((run) => run.factory_uid === factoryUid && run.parent_run_uid === null);
  const keyOf = (run: RunRow): string => {
    if (groupBy === "agent_type")
      return run.source === "SELF_IMPROVEMENT" ? "SELF_IMPROVEMENT" : run.agent_type || "UNKNOWN";
    if (groupBy === "root_vs_subrun") return run.parent_run_uid === null ? "ROOT" : "SUBRUN";
    return { status: run.state, source: run.source, model: run.model_id, harness: run.harness }[groupBy] || "UNKNOWN";
  };
  const countOf = (list: readonly RunRow[]): Slice<number> =>
    slices(start, end, unit, (isIn) => list.filter((run) => isIn(run.created_at)).length);
  const known = [...new Set(ours.map(keyOf))]
    .map((key) => ({ key, ...countOf(ours.filter((run) => keyOf(run) === key)) }))
    .filter(({ total }) => total > 0);
  const groups = [
    ...known
      .filter(({ key }) => key !== "UNKNOWN")
      .sort((a, b) => (a.total === b.total ? (a.key > b.key ? 1 : -1) : b.total - a.total)),
    ...known.filter(({ key }) => key === "UNKNOWN"),
  ];
  return {
    periods: unit === "" ? [] : labelsOf(start, end, unit),
    total: countOf(ours),
    rootRuns: countOf(roots),
    groups,
  };
}

/** Returns the metrics that a history has. */
export function recomputeMetrics(history: History, start: Date, end: Date, unit: string) {
  const { factoryUid, teamUid, runs } = history;
  const records = recomputeRecords(history);
  const of = <T>(compute: (isIn: (at: Date | null) => boolean) => T): Slice<T> => slices(start, end, unit, compute);
  const named = [...history.repositories, ...records.map(({ repo_full_name }) => repo_full_name)];
  const repos = new Set(named.map((name) => name.toLowerCase()).filter(Boolean));
  const inRepos = history.hostFacts.filter(
    ({ team_uid, repo_full_name }) => team_uid === teamUid && repos.has(repo_full_name.toLowerCase()),
  );
  const mergedIn = (isIn: (at: Date | null) => boolean): PullRequestRecord[] =>
    records.filter(({ merged_at }) => isIn(merged_at));

  return {
    periods: unit === "" ? [] : labelsOf(start, end, unit),
    runs: of((isIn) => runs.filter((run) => run.factory_uid === factoryUid && isIn(run.created_at)).length),
    pullRequests: of((isIn) => records.filter(({ first_seen_at }) => isIn(first_seen_at)).length),
    mergedPullRequests: of(
      (isIn) => records.filter(({ opened_at, merged_at }) => merged_at !== null && isIn(opened_at ?? merged_at)).length,
    ),
    interactions: of((isIn) => {
      const measured = records.filter(({ opened_at, human_total }) => isIn(opened_at) && human_total !== null);
      return measured.length === 0 ? null : sum(measured.map(({ human_total }) => human_total!)) / measured.length;
    }),
    funnel: of((isIn) => {
      const observed = mergedIn(isIn).filter(({ history_complete }) => history_complete);
      const everyone = [...inRepos.filter(({ merged_at }) => isIn(merged_at)), ...mergedIn(isIn)];
      return {
        all: new Set(everyone.map(({ url_key }) => url_key)).size,
        ours: mergedIn(isIn).length,
        observed: observed.length,
        autonomous: observed.filter(({ human_code_change }) => human_code_change === false).length,
        repos: [...repos].sort(),
      };
    }),
    impact: of((isIn) => {
      const measured = mergedIn(isIn).filter(({ additions, deletions }) => additions !== null && deletions !== null);
      return {
        additions: sum(measured.map(({ additions }) => additions!)),
        deletions: sum(measured.map(({ deletions }) => deletions!)),
        merged: mergedIn(isIn).length,
        measured: measured.length,
      };
    }),
    latency: of((isIn) => ({
      merged: mergedIn(isIn).length,
      stages: [
        stage(mergedIn(isIn), "kickoff_at", "opened_at"),
        stage(mergedIn(isIn), "opened_at", "first_human_review_at"),
        stage(mergedIn(isIn), "first_human_review_at", "merged_at"),
        stage(mergedIn(isIn), "kickoff_at", "merged_at"),
      ],
    })),
  };
}

type PullRequestRecord = Pick<
  RecordRow,
  | "url_key"
  | "repo_full_name"
  | "kickoff_at"
  | "first_seen_at"
  | "opened_at"
  | "first_human_review_at"
  | "merged_at"
  | "additions"
  | "deletions"
  | "history_complete"
  | "human_code_change"
  | "human_total"
>;

/** Returns the record of each pull request that runs of the factory produced. */
function recomputeRecords({
  factoryUid,
  teamUid,
  runs,
  produced,
  hostFacts,
  activities,
}: History): PullRequestRecord[] {
  const ours = produced.filter((each) => each.factory_uid === factoryUid);
  return [...new Set(ours.map(({ url_key }) => url_key))].map((url_key) => {
    const producers = ours.filter((each) => each.url_key === url_key);
    const host = hostFacts.find((facts) => facts.team_uid === teamUid && facts.url_key === url_key);
    const isLocal = !host && producers[0]!.provider === "LOCAL";
    const done = activities.filter((activity) => activity.team_uid === teamUid && activity.url_key === url_key);
    const counted = done.filter(({ is_person, is_dismissed }) => is_person && !is_dismissed);
    const reviews = counted.filter(({ kind }) => kind.startsWith("review_") && kind !== "review_comment");
    const producing = runs.filter(({ run_uid }) => producers.some((each) => each.run_uid === run_uid));
    const followUps = sum(producing.map(({ person_follow_ups }) => person_follow_ups));
    const first_seen_at = earliest(producers.map(({ created_at }) => created_at))!;
    return {
      url_key,
      repo_full_name: host?.repo_full_name ?? producers[0]!.repo_full_name,
      kickoff_at: earliest(producers.map(({ run_created_at }) => run_created_at))!,
      first_seen_at,
      opened_at: host ? host.opened_at : isLocal ? first_seen_at : null,
      first_human_review_at: earliest(reviews.map(({ occurred_at }) => occurred_at)),
      merged_at: host?.merged_at ?? null,
      additions: host?.additions ?? null,
      deletions: host?.deletions ?? null,
      history_complete: isLocal || done.some(({ kind }) => kind === "opened"),
      human_code_change: counted.some(({ kind }) => kind === "opened" || kind === "code_push"),
      human_total: host || isLocal ? counted.length + followUps : null,
    };
  });
}

type Instant = "kickoff_at" | "opened_at" | "first_human_review_at" | "merged_at";

function stage(
  records: readonly PullRequestRecord[],
  from: Instant,
  to: Instant,
): { median: number | null; measured: number } {
  const lengths = records.flatMap((record) => {
    const [begin, end] = [record[from], record[to]];
    return begin && end && end >= begin ? [end.getTime() - begin.getTime()] : [];
  });
  lengths.sort((a, b) => a - b);
  if (lengths.length === 0) return { median: null, measured: 0 };
  const upper = lengths[Math.floor(lengths.length / 2)]!;
  const lower = lengths[Math.ceil(lengths.length / 2) - 1]!;
  return { median: (lower + upper) / 2 / 1000, measured: lengths.length };
}

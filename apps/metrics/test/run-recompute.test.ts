import { randomInt } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { lockFactories } from "../src/store/factory-lock.ts";
import { projectPullRequests } from "../src/store/project-pull-requests.ts";
import { recomputeBreakdown, recomputeMetrics, type History } from "./recompute-runs.ts";
import { aHistory, seeded, type Report } from "./run-history.ts";
import { storeActivities, storeHostFacts, storeProduced, storeRuns } from "./run-rows.ts";
import { startRunWorld, type RunWorld } from "./run-world.ts";

const SEED = Number(process.env["MILLWRIGHT_DRILL_SEED"] ?? randomInt(2 ** 31));
const random = seeded(SEED);
const REPOSITORIES = ["Acme/Shop", "acme/unused"];
const UNITS = ["", "day", "week", "month"];
const GROUPINGS = ["agent_type", "status", "source", "root_vs_subrun", "model", "harness"];

let world: RunWorld;
let history: History;
beforeAll(async () => {
  world = await startRunWorld();
  const made = aHistory(random, [world.aFactory(REPOSITORIES), world.aFactory()], REPOSITORIES);
  history = made.history;
  while (made.reports.length > 0) await storeBatch(made.reports.splice(0, 1 + random.below(60)));
});
afterAll(() => world.stop());

/** Stores reports and makes the pull requests that they are about again, as ingestion does. */
async function storeBatch(reports: readonly Report[]): Promise<void> {
  const runs = reports.filter((report) => report.kind === "run");
  const repeats = runs.map(
    ({ run }, index) => runs.slice(0, index).filter((before) => before.run.run_uid === run.run_uid).length,
  );
  const produced = runs.flatMap((report) => report.produced);
  const hostFacts = reports.flatMap((report) => (report.kind === "host" ? [report.facts] : []));
  const activities = reports.flatMap((report) => (report.kind === "activity" ? [report.activity] : []));
  const urlKeys = [...produced, ...hostFacts, ...activities].map(({ url_key }) => url_key);
  const factoryUids = [...new Set(history.runs.map(({ factory_uid }) => factory_uid))];
  await world.database.transaction(async (tx) => {
    await lockFactories(tx, factoryUids);
    // A statement may store a run once.
    for (let repeat = 0; repeat < 3; repeat++)
      await storeRuns(
        tx,
        runs.filter((_report, index) => repeats[index] === repeat).map(({ run }) => run),
      );
    await storeProduced(tx, produced);
    await storeHostFacts(tx, hostFacts);
    await storeActivities(tx, activities);
    for (const factoryUid of factoryUids) await projectPullRequests(tx, factoryUid, [...new Set(urlKeys)]);
  });
}

/** A random range: from a millisecond to a third of a year. */
function aRange(): { start: Date; end: Date } {
  const start = random.instant();
  if (random.chance(0.1)) return { start, end: new Date(start.getTime() + 1 + random.below(3)) };
  const end = new Date(start.getTime() + 1 + random.below(120 * 86_400_000));
  return { start, end: random.chance(0.3) ? new Date(Math.ceil(end.getTime() / 86_400_000) * 86_400_000) : end };
}

const slices = <T, R>(unit: string, total: T, series: readonly T[], read: (value: T) => R) => ({
  total: read(total),
  series: unit === "" ? [] : series.map(read),
});
const countOf = ({ total, series }: { total: bigint; series: readonly bigint[] }) => ({
  total: Number(total),
  series: series.map(Number),
});
const rounded = (value: number | null = null): number | null =>
  value === null ? null : Math.round(value * 10_000) / 10_000;

type Metrics = Awaited<ReturnType<RunWorld["metrics"]>>;

function readMetrics(answer: Metrics, unit: string) {
  const interactions = answer.averageHumanInteractionsPerPr!;
  return {
    periods: answer.scope!.periodList,
    runs: countOf(answer.runCount!),
    pullRequests: countOf(answer.prCount!),
    mergedPullRequests: countOf(answer.mergedPrCount!),
    interactions: slices(unit, interactions.mean!, interactions.series, ({ value }) => value ?? null),
    funnel: slices(unit, answer.autonomyFunnel!, answer.autonomyFunnelSeries, (funnel) => ({
      all: Number(funnel.totalMerged),
      ours: Number(funnel.factoryMerged),
      observed: Number(funnel.factoryMergedObserved),
      autonomous: Number(funnel.mergedWithoutHumanCodeChange),
      repos: funnel.repos.map((name) => name.toLowerCase()),
    })),
    impact: slices(unit, answer.impact!, answer.impactSeries, (impact) => ({
      additions: Number(impact.additions),
      deletions: Number(impact.deletions),
      merged: Number(impact.mergedPrCount),
      measured: Number(impact.measuredPrCount),
    })),
    latency: slices(unit, answer.prLatency!, answer.prLatencySeries, (latency) => ({
      merged: Number(latency.mergedPrCount),
      stages: [latency.kickoffToPr, latency.prToFirstReview, latency.firstReviewToMerge, latency.kickoffToMerge].map(
        (stage) => ({ median: rounded(stage!.medianSeconds), measured: Number(stage!.measuredPrCount) }),
      ),
    })),
  };
}

function expectedMetrics(start: Date, end: Date, unit: string) {
  const expected = recomputeMetrics(history, start, end, unit);
  const round = ({ merged, stages }: (typeof expected.latency)["total"]) => ({
    merged,
    stages: stages.map(({ median, measured }) => ({ median: rounded(median), measured })),
  });
  return { ...expected, latency: { total: round(expected.latency.total), series: expected.latency.series.map(round) } };
}

describe(`after late, repeated and reordered facts (seed ${SEED})`, () => {
  test.each(UNITS)("metrics of random ranges by %j are those computed from the facts", async (unit) => {
    for (let round = 0; round < 12; round++) {
      const { start, end } = aRange();
      const answer = await world.metrics({ factoryUid: history.factoryUid, start, end, by: unit });
      expect({ start, end, ...readMetrics(answer, unit) }).toEqual({
        start,
        end,
        ...expectedMetrics(start, end, unit),
      });
    }
  });

  const groupings = GROUPINGS.flatMap((groupBy) => UNITS.map((unit) => [groupBy, unit] as const));
  test.each(groupings)(
    "runs of random ranges grouped by %s, by %j, are those computed from the facts",
    async (groupBy, unit) => {
      for (let round = 0; round < 6; round++) {
        const { start, end } = aRange();
        const answer = await world.breakdown({ factoryUid: history.factoryUid, start, end, by: unit }, groupBy);
        const read = {
          periods: answer.scope!.periodList,
          total: countOf(answer.total!),
          rootRuns: countOf(answer.rootRunCount!),
          groups: answer.groups.map(({ key, ...counts }) => ({ key, ...countOf(counts) })),
        };
        expect({ start, end, ...read }).toEqual({
          start,
          end,
          ...recomputeBreakdown(history, start, end, unit, groupBy),
        });
      }
    },
  );

  test("the history is not trivial: every number of its whole range differs from zero", () => {
    const all = recomputeMetrics(history, new Date("2026-01-01T00:00:00Z"), new Date("2026-12-01T00:00:00Z"), "");
    const { all: everyone, ours, observed, autonomous } = all.funnel.total;
    expect(everyone > ours && ours > observed && observed > autonomous && autonomous > 0).toBe(true);
    expect(all.latency.total.stages.every(({ median, measured }) => median !== null && measured < ours)).toBe(true);
  });
});

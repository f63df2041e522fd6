import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import type { RecordRow } from "./run-rows.ts";
import { refusalOf, startRunWorld, type RunWorld } from "./run-world.ts";
import { RUN_VIEWER, STRANGER } from "./setup.ts";

let world: RunWorld;
beforeAll(async () => void (world = await startRunWorld()));
afterAll(() => world.stop());

const NOVEMBER = { start: "2026-11-01T00:00:00Z", end: "2026-12-01T00:00:00Z" };
const WEEKS = { start: "2026-11-01T00:00:00Z", end: "2026-11-15T00:00:00Z", by: "week" };
const at = (text: string): Date => new Date(text);

test("an empty factory has zeros, undefined means and medians, and the repositories of its definition", async () => {
  const factoryUid = world.aFactory(["acme/shop"]);
  const answer = await world.metrics({ factoryUid, ...NOVEMBER });
  expect([answer.runCount!.total, answer.prCount!.total, answer.mergedPrCount!.total]).toEqual([0n, 0n, 0n]);
  expect(answer.averageHumanInteractionsPerPr!.mean!.value).toBeUndefined();
  expect(answer.autonomyFunnel).toMatchObject({
    totalMerged: 0n,
    factoryMerged: 0n,
    factoryMergedObserved: 0n,
    mergedWithoutHumanCodeChange: 0n,
    repos: ["acme/shop"],
  });
  expect(answer.impact).toMatchObject({ additions: 0n, deletions: 0n, mergedPrCount: 0n, measuredPrCount: 0n });
  const { kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge } = answer.prLatency!;
  for (const stage of [kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge])
    expect([stage!.medianSeconds, stage!.measuredPrCount]).toEqual([undefined, 0n]);
});

test("runs count with their sub-runs, also those that score, run benchmarks and improve agents", async () => {
  const factoryUid = world.aFactory();
  const root = await world.run(factoryUid, "2026-11-01T10:00:00Z");
  await world.run(factoryUid, "2026-11-02T10:00:00Z", { parent_run_uid: root.run_uid, root_run_uid: root.run_uid });
  for (const source of ["RUN_SCORER", "BENCHMARK_TRIAL", "SELF_IMPROVEMENT"])
    await world.run(factoryUid, "2026-11-09T10:00:00Z", { source });
  expect((await world.metrics({ factoryUid, ...WEEKS })).runCount).toMatchObject({ total: 5n, series: [2n, 3n] });
});

test("every series has one entry per period, and there is none without group_by_period", async () => {
  const factoryUid = world.aFactory();
  await world.record(factoryUid, "2026-11-09T10:00:00Z");
  const withSeries = await world.metrics({ factoryUid, ...WEEKS });
  const plain = await world.metrics({ factoryUid, ...NOVEMBER });
  const lengths = (answer: typeof plain): number[] =>
    [
      answer.scope!.periodList,
      answer.runCount!.series,
      answer.prCount!.series,
      answer.mergedPrCount!.series,
      answer.averageHumanInteractionsPerPr!.series,
      answer.autonomyFunnelSeries,
      answer.impactSeries,
      answer.prLatencySeries,
    ].map(({ length }) => length);
  expect([lengths(withSeries), lengths(plain)]).toEqual([new Array(8).fill(2), new Array(8).fill(0)]);
});

describe("the three anchors of time", () => {
  test("a pull request first seen, opened and merged in different weeks counts once in each, by its own anchor", async () => {
    const factoryUid = world.aFactory();
    await world.record(factoryUid, "2026-11-09T00:00:00Z", {
      first_seen_at: at("2026-11-10T00:00:00Z"),
      opened_at: at("2026-11-02T00:00:00Z"),
      merged_at: at("2026-11-17T00:00:00Z"),
    });
    const answer = await world.metrics({
      factoryUid,
      start: "2026-11-01T00:00:00Z",
      end: "2026-11-22T00:00:00Z",
      by: "week",
    });
    expect([answer.prCount!.series, answer.mergedPrCount!.series]).toEqual([
      [0n, 1n, 0n],
      [1n, 0n, 0n],
    ]);
    expect(answer.autonomyFunnelSeries.map(({ factoryMerged }) => factoryMerged)).toEqual([0n, 0n, 1n]);
    expect(answer.impactSeries.map(({ mergedPrCount }) => mergedPrCount)).toEqual([0n, 0n, 1n]);
    expect(answer.prLatencySeries.map(({ mergedPrCount }) => mergedPrCount)).toEqual([0n, 0n, 1n]);
  });

  test("each includes the start of the range and excludes its end", async () => {
    const factoryUid = world.aFactory();
    const [start, end] = [at("2026-11-03T04:05:06.007Z"), at("2026-11-03T04:05:06.009Z")];
    for (const time of [at("2026-11-03T04:05:06.006Z"), start, end])
      await world.record(factoryUid, "2026-11-01T00:00:00Z", { first_seen_at: time, opened_at: time, merged_at: time });
    const { prCount, mergedPrCount, autonomyFunnel } = await world.metrics({ factoryUid, start, end });
    expect([prCount!.total, mergedPrCount!.total, autonomyFunnel!.totalMerged]).toEqual([1n, 1n, 1n]);
  });

  test("merged_pr_count follows the opening: it rises when one of the cohort merges after the range", async () => {
    const factoryUid = world.aFactory();
    const opened = await world.record(factoryUid, "2026-11-02T00:00:00Z");
    await world.record(factoryUid, "2026-11-03T00:00:00Z", { state: "closed" });
    expect((await world.metrics({ factoryUid, ...WEEKS })).mergedPrCount).toMatchObject({
      total: 0n,
      series: [0n, 0n],
    });
    await world.record(factoryUid, "2026-11-02T00:00:00Z", {
      ...opened,
      state: "merged",
      merged_at: at("2026-11-19T00:00:00Z"),
    });
    expect((await world.metrics({ factoryUid, ...WEEKS })).mergedPrCount).toMatchObject({
      total: 1n,
      series: [1n, 0n],
    });
  });

  test("merged_pr_count takes the day of the merge if the opening was not observed", async () => {
    const factoryUid = world.aFactory();
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { opened_at: null, merged_at: at("2026-11-09T00:00:00Z") });
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { opened_at: null });
    expect((await world.metrics({ factoryUid, ...WEEKS })).mergedPrCount).toMatchObject({
      total: 1n,
      series: [0n, 1n],
    });
  });
});

describe("average_human_interactions_per_pr", () => {
  test("is the mean over those opened in the range, with any state, whose facts of the code host are known", async () => {
    const factoryUid = world.aFactory();
    for (const human_total of [0, 3, null])
      await world.record(factoryUid, "2026-11-02T00:00:00Z", { human_total, has_host_facts: human_total !== null });
    await world.record(factoryUid, "2026-11-09T00:00:00Z", { human_total: 4, state: "closed" });
    await world.record(factoryUid, "2026-11-09T00:00:00Z", {
      human_total: 100,
      opened_at: null,
      merged_at: at("2026-11-09T00:00:00Z"),
    });
    const mean = (await world.metrics({ factoryUid, ...WEEKS })).averageHumanInteractionsPerPr!;
    expect([mean.mean!.value, mean.series.map(({ value }) => value)]).toEqual([7 / 3, [1.5, 4]]);
  });

  test("is undefined, not zero, in a period without any", async () => {
    const factoryUid = world.aFactory();
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { human_total: 0 });
    const mean = (await world.metrics({ factoryUid, ...WEEKS })).averageHumanInteractionsPerPr!;
    expect([mean.mean!.value, mean.series.map(({ value }) => value)]).toEqual([0, [0, undefined]]);
  });
});

describe("the autonomy funnel", () => {
  test("counts merges by anyone in the repositories of the definition and of produced pull requests, whatever the case of names", async () => {
    const factoryUid = world.aFactory(["Acme/Funnel", "acme/zoo"]);
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { repo_full_name: "acme/Api" });
    for (const repository of ["acme/funnel", "ACME/API", "acme/other"])
      await world.merge(repository, "2026-11-03T00:00:00Z");
    const { autonomyFunnel } = await world.metrics({ factoryUid, ...NOVEMBER });
    expect(autonomyFunnel).toMatchObject({
      totalMerged: 2n,
      factoryMerged: 0n,
      repos: ["acme/Api", "Acme/Funnel", "acme/zoo"],
    });
  });

  test("counts a merge that both the code host and the factory know once", async () => {
    const factoryUid = world.aFactory(["acme/once"]);
    const merged = {
      url_key: "github.com/acme/once/pull/1",
      repo_full_name: "acme/once",
      merged_at: at("2026-11-03T00:00:00Z"),
    };
    await world.record(factoryUid, "2026-11-02T00:00:00Z", merged);
    await world.merge("acme/once", "2026-11-03T00:00:00Z", { url_key: merged.url_key });
    await world.merge("acme/once", "2026-11-04T00:00:00Z");
    expect((await world.metrics({ factoryUid, ...NOVEMBER })).autonomyFunnel).toMatchObject({
      totalMerged: 2n,
      factoryMerged: 1n,
    });
  });

  test("counts the factory's own merges that no code host has reported, such as those of local repositories", async () => {
    const factoryUid = world.aFactory();
    await world.record(factoryUid, "2026-11-02T00:00:00Z", {
      repo_full_name: "",
      has_host_facts: false,
      history_complete: false,
      human_code_change: null,
      merged_at: at("2026-11-03T00:00:00Z"),
    });
    expect((await world.metrics({ factoryUid, ...NOVEMBER })).autonomyFunnel).toMatchObject({
      totalMerged: 1n,
      factoryMerged: 1n,
      factoryMergedObserved: 0n,
      mergedWithoutHumanCodeChange: 0n,
      repos: [],
    });
  });

  test("does not count merges of other teams, or pull requests that another factory produced elsewhere", async () => {
    const factoryUid = world.aFactory(["acme/ours"]);
    await world.merge("acme/ours", "2026-11-03T00:00:00Z", { team_uid: newUid() });
    await world.merge("acme/elsewhere", "2026-11-03T00:00:00Z", { url_key: "github.com/acme/elsewhere/pull/1" });
    const produced = {
      url_key: "github.com/acme/elsewhere/pull/1",
      repo_full_name: "acme/elsewhere",
      merged_at: at("2026-11-03T00:00:00Z"),
    };
    await world.record(world.aFactory(), "2026-11-02T00:00:00Z", produced);
    const { autonomyFunnel } = await world.metrics({ factoryUid, ...NOVEMBER });
    expect(autonomyFunnel).toMatchObject({ totalMerged: 0n, factoryMerged: 0n, repos: ["acme/ours"] });
  });

  test("measures autonomy only of those whose history is complete", async () => {
    const factoryUid = world.aFactory();
    const merged: [boolean, boolean | null][] = [
      [true, false],
      [true, true],
      [true, null],
      [false, false],
      [false, null],
    ];
    for (const [history_complete, human_code_change] of merged)
      await world.record(factoryUid, "2026-11-02T00:00:00Z", {
        history_complete,
        human_code_change,
        merged_at: at("2026-11-03T00:00:00Z"),
      });
    await world.record(factoryUid, "2026-11-02T00:00:00Z"); // not merged
    expect((await world.metrics({ factoryUid, ...NOVEMBER })).autonomyFunnel).toMatchObject({
      factoryMerged: 5n,
      factoryMergedObserved: 3n,
      mergedWithoutHumanCodeChange: 1n,
    });
  });

  test("names every repository once, as the newest pull request spells it unless the definition does", async () => {
    const factoryUid = world.aFactory(["Acme/Shop"]);
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { repo_full_name: "acme/SHOP" });
    await world.record(factoryUid, "2026-11-02T00:00:00Z", { repo_full_name: "acme/api" });
    await world.record(factoryUid, "2026-11-03T00:00:00Z", { repo_full_name: "acme/API" });
    const { autonomyFunnel, autonomyFunnelSeries } = await world.metrics({ factoryUid, ...WEEKS });
    expect([autonomyFunnel!.repos, ...autonomyFunnelSeries.map(({ repos }) => repos)]).toEqual(
      new Array(3).fill(["acme/API", "Acme/Shop"]),
    );
  });
});

test("impact adds the lines of those merged pull requests whose both counts are known", async () => {
  const factoryUid = world.aFactory();
  const sizes: [number | null, number | null][] = [
    [10, 5],
    [0, 0],
    [null, null],
    [7, null],
    [null, 7],
  ];
  for (const [additions, deletions] of sizes)
    await world.record(factoryUid, "2026-11-02T00:00:00Z", {
      additions,
      deletions,
      merged_at: at("2026-11-03T00:00:00Z"),
    });
  const { impact } = await world.metrics({ factoryUid, ...NOVEMBER });
  expect(impact).toMatchObject({ additions: 10n, deletions: 5n, mergedPrCount: 5n, measuredPrCount: 2n });
});

describe("latency", () => {
  const KICKOFF = Date.parse("2026-11-02T00:00:00Z");
  /** A merged record; times in seconds after its kickoff. */
  const merged = (
    factoryUid: string,
    opened: number | null,
    review: number | null,
    merge: number,
  ): Promise<RecordRow> => {
    const after = (seconds: number | null) => (seconds === null ? null : new Date(KICKOFF + seconds * 1000));
    return world.record(factoryUid, "2026-11-02T00:00:00Z", {
      kickoff_at: after(0)!,
      opened_at: after(opened),
      first_human_review_at: after(review),
      merged_at: after(merge),
    });
  };
  const stages = async (factoryUid: string) => {
    const { prLatency } = await world.metrics({ factoryUid, ...NOVEMBER });
    const { mergedPrCount, kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge } = prLatency!;
    const inOrder = [kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge];
    return [Number(mergedPrCount), ...inOrder.map((stage) => [stage!.medianSeconds, Number(stage!.measuredPrCount)])];
  };

  test("is the middle value of each stage", async () => {
    const factoryUid = world.aFactory();
    await merged(factoryUid, 10, 110, 1110);
    await merged(factoryUid, 20, 220, 2220);
    await merged(factoryUid, 90, 990, 9990);
    expect(await stages(factoryUid)).toEqual([3, [20, 3], [200, 3], [2000, 3], [2220, 3]]);
  });

  test("is the mean of the two middle values when their number is even", async () => {
    const factoryUid = world.aFactory();
    for (const opened of [1, 2, 5, 1000]) await merged(factoryUid, opened, null, 2000);
    expect(await stages(factoryUid)).toEqual([4, [3.5, 4], [undefined, 0], [undefined, 0], [2000, 4]]);
  });

  test("of each stage has its own population: what has no beginning or no end is not measured", async () => {
    const factoryUid = world.aFactory();
    await merged(factoryUid, null, null, 100);
    await merged(factoryUid, null, 50, 150);
    await merged(factoryUid, 10, null, 200);
    expect(await stages(factoryUid)).toEqual([3, [10, 1], [undefined, 0], [100, 1], [150, 3]]);
  });

  test("does not measure a stage that ends before it begins; one without length is measured", async () => {
    const factoryUid = world.aFactory();
    await merged(factoryUid, 100, 50, 40); // reviewed before it was opened, merged before that review
    await merged(factoryUid, -1, -1, -1);
    await merged(factoryUid, 0, 0, 0);
    expect(await stages(factoryUid)).toEqual([3, [50, 2], [0, 2], [0, 2], [20, 2]]);
  });
});

test("dates are echoed as resolved", async () => {
  const factoryUid = world.aFactory();
  const { scope } = await world.metrics({ factoryUid, end: "2026-11-02T01:00:00+02:00", by: "month" });
  const seconds = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1000) });
  expect(scope).toMatchObject({
    factoryUid,
    groupByPeriod: "month",
    periodList: ["2026-10-01", "2026-11-01"],
    startDate: seconds("2026-10-02T23:00:00Z"),
    endDate: seconds("2026-11-01T23:00:00Z"),
  });
});

test.each([
  ["a start at its end", { start: NOVEMBER.start, end: NOVEMBER.start }, "date_range_invalid"],
  ["an unknown period", { ...NOVEMBER, by: "hour" }, "group_by_period_invalid"],
  ["366 days", { start: "2025-11-01T00:00:00Z", end: "2026-11-02T00:00:00Z", by: "day" }, "too_many_periods"],
])("%s is refused", async (_what, query, reason) => {
  await expect(world.metrics({ factoryUid: world.aFactory(), ...query })).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason }),
  );
});

test("another team gets the 404 of an unknown factory, even for invalid parameters", async () => {
  const factoryUid = world.aFactory();
  const refusal = (uid: string): Promise<unknown> =>
    refusalOf(world.metrics({ factoryUid: uid, by: "hour" }, STRANGER));
  expect(await refusal(factoryUid)).toMatchObject({ kind: "not_found", reason: "factory_not_found" });
  expect(await refusal(factoryUid)).toEqual(await refusal(newUid()));
  await expect(world.metrics({ factoryUid }, RUN_VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
});

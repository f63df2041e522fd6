import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { refusalOf, startRunWorld, type RunWorld } from "./run-world.ts";
import { RUN_VIEWER, STRANGER } from "./setup.ts";

let world: RunWorld;
beforeAll(async () => void (world = await startRunWorld()));
afterAll(() => world.stop());

type Answer = Awaited<ReturnType<RunWorld["breakdown"]>>;
const keys = ({ groups }: Answer): [string, number][] => groups.map(({ key, total }) => [key, Number(total)]);
const DAY = { start: "2026-11-01T00:00:00Z", end: "2026-11-02T00:00:00Z" };

/** A factory with a root of source SLACK and two of its sub-runs. */
async function aTree(): Promise<string> {
  const factoryUid = world.aFactory();
  const foreman = { source: "SLACK", agent_type: "FOREMAN", model_id: "", harness: "codex", state: "BLOCKED" };
  const root = await world.run(factoryUid, "2026-11-01T10:00:00Z", foreman);
  const below = { root_run_uid: root.run_uid, parent_run_uid: root.run_uid, source: "ORCHESTRATION" };
  await world.run(factoryUid, "2026-11-01T11:00:00Z", { ...below, agent_type: "IMPLEMENT" });
  await world.run(factoryUid, "2026-11-01T12:00:00Z", { ...below, agent_type: "", harness: "" });
  return factoryUid;
}

describe("each grouping", () => {
  test.each<[string, [string, number][], number]>([
    [
      "agent_type",
      [
        ["FOREMAN", 1],
        ["IMPLEMENT", 1],
        ["UNKNOWN", 1],
      ],
      3,
    ],
    [
      "status",
      [
        ["SUCCEEDED", 2],
        ["BLOCKED", 1],
      ],
      3,
    ],
    ["source", [["SLACK", 1]], 1],
    [
      "root_vs_subrun",
      [
        ["SUBRUN", 2],
        ["ROOT", 1],
      ],
      3,
    ],
    [
      "model",
      [
        ["model-1", 2],
        ["UNKNOWN", 1],
      ],
      3,
    ],
    [
      "harness",
      [
        ["claude", 1],
        ["codex", 1],
        ["UNKNOWN", 1],
      ],
      3,
    ],
  ])("by %s", async (groupBy, groups, total) => {
    const answer = await world.breakdown({ factoryUid: await aTree(), ...DAY }, groupBy);
    expect(keys(answer)).toEqual(groups);
    expect([answer.groupBy, Number(answer.total!.total), Number(answer.rootRunCount!.total)]).toEqual([
      groupBy,
      total,
      1,
    ]);
  });

  test("by source counts root runs only, so that the total equals the root runs in every period", async () => {
    const { total, rootRunCount, groups } = await world.breakdown(
      { factoryUid: await aTree(), ...DAY, by: "day" },
      "source",
    );
    expect([total, groups.map(({ series }) => series)]).toEqual([rootRunCount, [[1n]]]);
  });

  test("runs in which agents improve themselves form a labelled group, whatever the type of the agent", async () => {
    const factoryUid = world.aFactory();
    await world.run(factoryUid, "2026-11-01T10:00:00Z", { source: "SELF_IMPROVEMENT", agent_type: "REVIEW" });
    await world.run(factoryUid, "2026-11-01T10:00:00Z", { source: "API", agent_type: "REVIEW" });
    const { groups } = await world.breakdown({ factoryUid, ...DAY }, "agent_type");
    expect(groups.map(({ key, label }) => [key, label])).toEqual([
      ["REVIEW", ""],
      ["SELF_IMPROVEMENT", "Self-improvement"],
    ]);
    expect((await world.breakdown({ factoryUid, ...DAY }, "source")).groups.map(({ label }) => label)).toEqual([
      "",
      "",
    ]);
  });

  test("what is not known comes last, however much it is; equal groups are in the order of their keys", async () => {
    const factoryUid = world.aFactory();
    for (const model_id of ["", "", "", "b", "a", "c", "c"])
      await world.run(factoryUid, "2026-11-01T10:00:00Z", { model_id });
    expect(keys(await world.breakdown({ factoryUid, ...DAY }, "model"))).toEqual([
      ["c", 2],
      ["a", 1],
      ["b", 1],
      ["UNKNOWN", 3],
    ]);
  });

  test.each(["", "agent", "STATUS", "creator"])(
    "group_by %j is refused and the allowed values are named",
    async (groupBy) => {
      const answer = world.breakdown({ factoryUid: world.aFactory(), ...DAY }, groupBy);
      await expect(answer).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "group_by_invalid" }));
      await expect(answer).rejects.toThrow("agent_type, status, source, root_vs_subrun, model or harness");
    },
  );
});

describe("the range", () => {
  const countOf = async (factoryUid: string, start: string, end: string, by?: string): Promise<[number, number[]]> => {
    const { total } = await world.breakdown({ factoryUid, start, end, by }, "status");
    return [Number(total!.total), total!.series.map(Number)];
  };

  test("includes its start and excludes its end, at midnight and inside a day", async () => {
    const factoryUid = world.aFactory();
    for (const at of [
      "2026-11-01T00:00:00.000Z",
      "2026-11-01T12:00:00.000Z",
      "2026-11-01T23:59:59.999Z",
      "2026-11-02T00:00:00.000Z",
    ])
      await world.run(factoryUid, at);
    expect(await countOf(factoryUid, "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")).toEqual([3, []]);
    expect(await countOf(factoryUid, "2026-11-01T12:00:00Z", "2026-11-02T00:00:00.001Z")).toEqual([3, []]);
    expect(await countOf(factoryUid, "2026-11-01T00:00:00.001Z", "2026-11-01T12:00:00Z")).toEqual([0, []]);
    expect(await countOf(factoryUid, "2026-11-01T12:00:00Z", "2026-11-01T12:00:00.001Z")).toEqual([1, []]);
    expect(await countOf(factoryUid, "2026-11-01T23:59:59.999Z", "2026-11-03T00:00:00Z", "day")).toEqual([2, [1, 1]]);
  });

  test("may be given with an offset; days are of UTC", async () => {
    const factoryUid = world.aFactory();
    await world.run(factoryUid, "2026-11-01T22:30:00Z");
    const answer = await world.breakdown(
      { factoryUid, start: "2026-11-02T00:00:00+02:00", end: "2026-11-02T01:00:00+02:00", by: "day" },
      "status",
    );
    expect([answer.scope!.periodList, answer.total!.series]).toEqual([["2026-11-01"], [1n]]);
  });

  test("weeks begin on Sunday", async () => {
    const factoryUid = world.aFactory();
    await world.run(factoryUid, "2026-11-14T23:59:59.999Z"); // Saturday
    await world.run(factoryUid, "2026-11-15T00:00:00.000Z"); // Sunday
    await world.run(factoryUid, "2026-11-16T00:00:00.000Z"); // Monday
    const answer = await world.breakdown(
      { factoryUid, start: "2026-11-13T00:00:00Z", end: "2026-11-17T00:00:00Z", by: "week" },
      "status",
    );
    expect([answer.scope!.periodList, answer.total!.series]).toEqual([
      ["2026-11-08", "2026-11-15"],
      [1n, 2n],
    ]);
  });

  test("the first and the last month are clipped to it", async () => {
    const factoryUid = world.aFactory();
    for (const at of [
      "2026-01-15T11:59:59Z",
      "2026-01-15T12:00:00Z",
      "2026-02-10T00:00:00Z",
      "2026-03-31T23:59:59Z",
      "2026-03-02T06:00:00Z",
    ])
      await world.run(factoryUid, at);
    const answer = await world.breakdown(
      { factoryUid, start: "2026-01-15T12:00:00Z", end: "2026-03-02T06:00:00Z", by: "month" },
      "status",
    );
    expect([answer.scope!.periodList, answer.total!.series]).toEqual([
      ["2026-01-01", "2026-02-01", "2026-03-01"],
      [1n, 1n, 0n],
    ]);
  });

  test("touches at most 365 periods; without periods it may be any length", async () => {
    const factoryUid = world.aFactory();
    await world.run(factoryUid, "1999-12-31T23:00:00Z");
    const year = { factoryUid, start: "2026-01-01T00:00:00Z", by: "day" };
    const { groups, scope } = await world.breakdown({ ...year, end: "2027-01-01T00:00:00Z" }, "status");
    expect([scope!.periodList.length, groups]).toEqual([365, []]);
    await expect(world.breakdown({ ...year, end: "2027-01-01T00:00:00.001Z" }, "status")).rejects.toEqual(
      domainError({ reason: "too_many_periods" }),
    );
    expect(await countOf(factoryUid, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z")).toEqual([1, []]);
  });

  test("is the 30 days until now unless given, and is returned as resolved", async () => {
    const factoryUid = world.aFactory();
    await world.run(factoryUid, "2026-10-21T10:00:00Z");
    await world.run(factoryUid, "2026-11-20T10:00:00Z"); // now
    const { scope, total } = await world.breakdown({ factoryUid, by: "day" }, "status");
    expect([scope!.periodList.length, scope!.periodList[0], total!.total, total!.series[0]]).toEqual([
      31,
      "2026-10-21",
      1n,
      1n,
    ]);
    await expect(world.breakdown({ factoryUid, start: "2026-11-20T10:00:00Z" }, "status")).rejects.toEqual(
      domainError({ reason: "date_range_invalid" }),
    );
  });
});

test("without group_by_period nothing has a series", async () => {
  const { total, rootRunCount, groups, scope } = await world.breakdown({ factoryUid: await aTree(), ...DAY }, "status");
  expect([scope!.periodList, total!.series, rootRunCount!.series, ...groups.map(({ series }) => series)]).toEqual([
    [],
    [],
    [],
    [],
    [],
  ]);
});

test("a run moves to the group of its newest state; an older report changes nothing", async () => {
  const factoryUid = world.aFactory();
  const run = await world.run(factoryUid, "2026-11-01T10:00:00Z", { state: "QUEUED" });
  const report = (version: number, state: string) =>
    world.run(factoryUid, "2026-11-01T10:00:00Z", { ...run, version, state });
  await report(5, "SUCCEEDED");
  await report(3, "IN_PROGRESS");
  await report(5, "SUCCEEDED");
  expect(keys(await world.breakdown({ factoryUid, ...DAY }, "status"))).toEqual([["SUCCEEDED", 1]]);
});

test("runs of another factory do not count", async () => {
  await aTree();
  expect(keys(await world.breakdown({ factoryUid: world.aFactory(), ...DAY }, "status"))).toEqual([]);
});

test("a factory of another team is answered exactly as one that does not exist; a member needs the right to view it", async () => {
  const factoryUid = world.aFactory();
  const refusal = (uid: string): Promise<unknown> => refusalOf(world.breakdown({ factoryUid: uid }, "", STRANGER));
  expect(await refusal(factoryUid)).toMatchObject({ kind: "not_found", reason: "factory_not_found" });
  expect(await refusal(factoryUid)).toEqual(await refusal(newUid()));
  expect(await refusal(factoryUid)).toEqual(await refusal("not a uid"));
  await expect(world.breakdown({ factoryUid }, "status", RUN_VIEWER)).rejects.toEqual(
    domainError({ kind: "permission_denied" }),
  );
});

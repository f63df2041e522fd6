import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Caller } from "@millwright/caller";
import type { metrics } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { CostFacts } from "./cost-rows.ts";
import type { FakeProfile } from "./fake-identity.ts";
import { NOW, OWNER, RUN_VIEWER, startWorld, STRANGER, TEAM, type World } from "./setup.ts";

let world: World;
let facts: CostFacts;
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  await world.reset();
  facts = new CostFacts(world);
});
afterAll(() => world.stop());

type RangeInit = Omit<MessageInitShape<typeof metrics.RangeSchema>, "startDate" | "endDate" | "$typeName"> & {
  start?: string;
  end?: string;
};

const breakdown = (
  { start, end, groupBy = "source", ...range }: RangeInit & { groupBy?: string } = {},
  caller: Caller = OWNER,
) =>
  world.metrics.getCostBreakdown(
    {
      groupBy,
      range: {
        factoryUid: facts.factoryUid,
        ...range,
        startDate: start === undefined ? undefined : timestampFromDate(new Date(start)),
        endDate: end === undefined ? undefined : timestampFromDate(new Date(end)),
      },
    },
    call(caller),
  );

const microsOf = (spend: metrics.Spend | undefined): number[] =>
  [spend!.inferenceMicros, spend!.computeMicros, spend!.platformMicros].map(Number);
const totalOf = (spend: metrics.Spend | undefined): number => microsOf(spend).reduce((a, b) => a + b, 0);
const totals = ({ groups }: metrics.GetCostBreakdownResponse): [string, number][] =>
  groups.map(({ key, spend }) => [key, totalOf(spend)]);

test("attributes a whole tree to the source and creator of its root, but each run to its own agent and model", async () => {
  const root = facts.run({ source: "SCHEDULED", creator_uid: "ann", agent_uid: "foreman", model_id: "large" });
  const child = facts.run({ source: "API", agent_uid: "builder", model_id: "small" }, root);
  facts.spend(root, "inference", 5);
  facts.spend(child, "inference", 7);
  facts.spend(child, "compute", 11);
  await facts.store();
  expect(totals(await breakdown({ groupBy: "source" }))).toEqual([["SCHEDULED", 23]]);
  expect(totals(await breakdown({ groupBy: "user" }))).toEqual([["ann", 23]]);
  expect(totals(await breakdown({ groupBy: "agent" }))).toEqual([
    ["builder", 18],
    ["foreman", 5],
  ]);
  expect(totals(await breakdown({ groupBy: "model" }))).toEqual([
    ["small", 18],
    ["large", 5],
  ]);
});

test("sorts by spend, then by key, and UNKNOWN last whatever it cost", async () => {
  for (const [model, micros] of [
    ["", 900],
    ["b", 5],
    ["a", 5],
    ["c", 50],
  ] as const)
    facts.spend(facts.run({ model_id: model }), "inference", micros);
  await facts.store();
  const answer = await breakdown({ groupBy: "model" });
  expect(totals(answer)).toEqual([
    ["c", 50],
    ["a", 5],
    ["b", 5],
    ["UNKNOWN", 900],
  ]);
  expect(answer.groups.map(({ label }) => label)).toEqual(["c", "a", "b", "UNKNOWN"]);
});

test.each(["source", "user", "agent", "model"])("calls a missing %s UNKNOWN", async (groupBy) => {
  facts.spend(facts.run({ source: "", creator_type: "", creator_uid: "", agent_uid: "", model_id: "" }), "compute", 3);
  await facts.store();
  expect((await breakdown({ groupBy })).groups).toMatchObject([{ key: "UNKNOWN", label: "UNKNOWN", deleted: false }]);
});

test("lists every group with spend and no other", async () => {
  for (let index = 0; index < 120; index++)
    facts.spend(facts.run({ agent_uid: `agent-${index}` }), "compute", 1 + index);
  facts.spend(facts.run({ agent_uid: "free" }), "compute", 0);
  facts.spend(facts.run({ agent_uid: "unpriced" }), "inference", null);
  const refunded = facts.run({ agent_uid: "refunded" });
  facts.spend(refunded, "compute", 9);
  facts.spend(refunded, "compute", -9, { kind: "adjustment" });
  await facts.store();
  const { groups } = await breakdown({ groupBy: "agent" });
  expect(groups).toHaveLength(120);
  expect(groups.map(({ key }) => key)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/free|unpriced|refunded/)]),
  );
});

test("returns the spend of the whole factory, also of trees without a pull request, and of no other factory", async () => {
  const other = new CostFacts(world);
  other.spend(other.run(), "compute", 1_000);
  await other.store();
  const producer = facts.run();
  facts.produce(producer, 1);
  facts.spend(producer, "inference", 5);
  facts.spend(facts.run(), "compute", 7);
  facts.spend(facts.run(), "platform", 11);
  await facts.store();
  expect(microsOf((await breakdown()).total)).toEqual([5, 7, 11]);
});

test("counts spend when it occurred: from the start, before the end, in parts of days", async () => {
  const run = facts.run({ created_at: "2026-01-01T00:00:00.000Z" });
  const times = [
    "2026-11-10T05:59:59.999Z",
    "2026-11-10T06:00:00.000Z",
    "2026-11-10T23:59:59.999Z",
    "2026-11-11T00:00:00.000Z",
    "2026-11-12T12:00:00.000Z",
    "2026-11-13T00:00:00.000Z",
    "2026-11-13T05:59:59.999Z",
    "2026-11-13T06:00:00.000Z",
  ];
  for (const [index, at] of times.entries()) facts.spend(run, "compute", 10 ** index, { at });
  await facts.store();
  const spent = async (start: string, end: string) => totalOf((await breakdown({ start, end })).total);
  expect(await spent("2026-11-10T06:00:00Z", "2026-11-13T06:00:00Z")).toBe(1_111_110);
  expect(await spent("2026-11-10T00:00:00Z", "2026-11-14T00:00:00Z")).toBe(11_111_111);
  expect(await spent("2026-11-11T00:00:00Z", "2026-11-13T00:00:00Z")).toBe(11_000);
  expect(await spent("2026-11-10T06:00:00Z", "2026-11-10T06:00:00.001Z")).toBe(10);
  expect(await spent("2026-11-10T23:00:00Z", "2026-11-11T00:00:00.001Z")).toBe(1_100);
  expect(await spent("2026-11-10T23:59:59.999Z", "2026-11-11T00:00:00Z")).toBe(100);
});

test("has one entry per period in every series; weeks start on Sunday", async () => {
  const run = facts.run();
  facts.spend(run, "inference", 1, { at: "2026-11-14T23:59:59.999Z" }); // a Saturday
  facts.spend(run, "compute", 2, { at: "2026-11-15T00:00:00.000Z" });
  facts.spend(facts.run({ source: "WEBHOOK" }), "platform", 4, { at: "2026-11-19T00:00:00.000Z" });
  await facts.store();
  const { scope, totalSeries, groups } = await breakdown({
    start: "2026-11-10T12:00:00Z",
    end: "2026-11-20T00:00:00Z",
    groupByPeriod: "week",
  });
  expect(scope!.periodList).toEqual(["2026-11-08", "2026-11-15"]);
  expect(totalSeries.map(microsOf)).toEqual([
    [1, 0, 0],
    [0, 2, 4],
  ]);
  expect(groups.map(({ key, series }) => [key, series.map(microsOf)])).toEqual([
    [
      "WEBHOOK",
      [
        [0, 0, 0],
        [0, 0, 4],
      ],
    ],
    [
      "API",
      [
        [1, 0, 0],
        [0, 2, 0],
      ],
    ],
  ]);
});

test("covers the last 30 days unless dates are given, which touch 31 days", async () => {
  const run = facts.run();
  facts.spend(run, "compute", 1, { at: "2026-10-21T09:59:59.999Z" });
  facts.spend(run, "compute", 2, { at: "2026-10-21T10:00:00.000Z" });
  facts.spend(run, "compute", 4, { at: "2026-11-20T09:59:59.999Z" });
  facts.spend(run, "compute", 8, { at: NOW.toISOString() });
  await facts.store();
  const { total, totalSeries, groups } = await breakdown({ groupByPeriod: "day" });
  expect([totalOf(total), totalSeries.length, groups[0]!.series.length]).toEqual([6, 31, 31]);
  expect([totalSeries[0], totalSeries[30]].map(totalOf)).toEqual([2, 4]);
  expect((await breakdown()).totalSeries).toEqual([]);
});

test("covers the time since year 1 when the default start would be earlier", async () => {
  expect(await breakdown({ end: "0001-01-02T00:00:00Z", groupByPeriod: "day" })).toMatchObject({ groups: [] });
  await expect(breakdown({ end: "0001-01-01T00:00:00Z" })).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "date_range_invalid" }),
  );
});

test("counts what has a price and what has none", async () => {
  const run = facts.run();
  for (const at of ["2026-11-17T10:00:00.000Z", "2026-11-20T09:00:00.000Z"]) {
    facts.spend(run, "inference", 5, { at });
    facts.spend(run, "inference", 0, { at });
    facts.spend(run, "inference", null, { at });
    facts.spend(run, "compute", null, { at });
    facts.spend(run, "platform", 2, { at });
    facts.spend(run, "inference", -1, { at, kind: "adjustment" });
  }
  await facts.store();
  const { coverage } = await breakdown();
  expect(coverage).toMatchObject({
    modelCalls: 6n,
    pricedModelCalls: 4n,
    computeIntervals: 2n,
    pricedComputeIntervals: 0n,
  });
});

test("is exact beyond the safe integers", async () => {
  const run = facts.run();
  for (let index = 0; index < 3; index++) facts.spend(run, "compute", Number.MAX_SAFE_INTEGER);
  await facts.store();
  expect((await breakdown()).total!.computeMicros).toBe(3n * BigInt(Number.MAX_SAFE_INTEGER));
});

test("labels creators with their names, and marks deleted ones", async () => {
  const [ann, bob, robot, former, gone] = [newUid(), newUid(), newUid(), newUid(), newUid()];
  const knows = (profile: FakeProfile): unknown => world.identity.profiles.set(profile.uid, profile);
  knows({ uid: ann, type: "user", displayName: "Ann", photoUrl: "https://photos.test/ann", teamUids: [TEAM] });
  knows({ uid: bob, type: "user", email: "bob@acme.test" }); // has left the team
  knows({ uid: robot, type: "service_account", displayName: "Robot", teamUids: [TEAM] });
  knows({ uid: former, type: "service_account", displayName: "Former" });
  const creators = [
    [ann, "user"],
    [bob, "user"],
    [robot, "agent"],
    [former, "agent"],
    [gone, "user"],
    ["scheduler", "service"],
    [TEAM, "team"],
  ] as const;
  for (const [index, [creator_uid, creator_type]] of creators.entries())
    facts.spend(facts.run({ creator_uid, creator_type }), "compute", 100 - index);
  await facts.store();
  const { groups } = await breakdown({ groupBy: "user" });
  expect(groups.map(({ key, label, deleted, photoUrl }) => [key, label, deleted, photoUrl])).toEqual([
    [ann, "Ann", false, "https://photos.test/ann"],
    [bob, "bob@acme.test", false, undefined],
    [robot, "Robot", false, undefined],
    [former, "Former", true, undefined],
    [gone, gone, true, undefined],
    ["scheduler", "scheduler (service)", false, undefined],
    [TEAM, "Team", false, undefined],
  ]);
});

test("labels agents with their newest names, and marks deleted ones", async () => {
  const [existing, deleted, nameless] = [newUid(), newUid(), newUid()];
  world.identity.profiles.set(existing, {
    uid: existing,
    type: "service_account",
    displayName: "Builder 3",
    teamUids: [TEAM],
  });
  world.identity.profiles.set(deleted, { uid: deleted, type: "service_account", displayName: "Reviewer" });
  facts.spend(
    facts.run({ agent_uid: existing, agent_name: "Builder 2", created_at: "2026-11-18T09:00:00.000Z" }),
    "compute",
    5,
  );
  facts.spend(
    facts.run({ agent_uid: existing, agent_name: "Builder 1", created_at: "2026-11-17T09:00:00.000Z" }),
    "compute",
    5,
  );
  facts.run({ agent_uid: existing, agent_name: "", created_at: "2026-11-19T09:00:00.000Z" });
  facts.spend(facts.run({ agent_uid: deleted, agent_name: "Old reviewer" }), "compute", 4);
  facts.spend(facts.run({ agent_uid: nameless, agent_name: "" }), "compute", 3);
  await facts.store();
  const { groups } = await breakdown({ groupBy: "agent" });
  expect(groups.map(({ key, label, deleted: isDeleted }) => [key, label, isDeleted])).toEqual([
    [existing, "Builder 2", false],
    [deleted, "Old reviewer", true],
    [nameless, nameless, true],
  ]);
});

test("falls back to keys while the gateway is unreachable, and marks no creator as deleted", async () => {
  const [ann, agent] = [newUid(), newUid()];
  world.identity.isFailing = true;
  facts.spend(facts.run({ creator_uid: ann, agent_uid: agent, agent_name: "Builder" }), "compute", 5);
  await facts.store();
  expect((await breakdown({ groupBy: "user" })).groups).toMatchObject([{ key: ann, label: ann, deleted: false }]);
  expect((await breakdown({ groupBy: "agent" })).groups).toMatchObject([
    { key: agent, label: "Builder", deleted: false },
  ]);
});

test("returns no groups where nothing was spent", async () => {
  const { total, groups, groupBy } = await breakdown({ groupBy: "user" });
  expect([totalOf(total), groups, groupBy]).toEqual([0, [], "user"]);
});

test.each(["", "agents", "Source"])("refuses the grouping %j and names the allowed ones", async (groupBy) => {
  const refused = breakdown({ groupBy });
  await expect(refused).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "group_by_invalid" }));
  await expect(refused).rejects.toThrow(`group_by must be one of source, user, agent, model (got "${groupBy}").`);
});

test("returns the same error to non-members for an existing and an absent factory", async () => {
  const errorOf = (answer: Promise<unknown>): Promise<Error> =>
    answer.then(
      () => new Error("answered"),
      (error: Error) => error,
    );
  const hidden = await errorOf(breakdown({}, STRANGER));
  const absent = await errorOf(breakdown({ factoryUid: newUid() }));
  expect(hidden).toEqual(domainError({ kind: "not_found", reason: "factory_not_found" }));
  expect(JSON.stringify(hidden)).toBe(JSON.stringify(absent));
  expect(hidden.message).toBe(absent.message);
  await expect(breakdown({ groupBy: "nonsense" }, STRANGER)).rejects.toEqual(
    domainError({ reason: "factory_not_found" }),
  );
  await expect(breakdown({}, RUN_VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
});

import { clone } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { orchestrator } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { enqueueWork } from "@millwright/work";
import { RECORD_DELIVERY } from "../src/usecases/record-deliveries.ts";
import { computeInterval, finishRun, modelCall, producedPullRequest, runSnapshot } from "./run-samples.ts";
import { NOW, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let world: World;
const at = { factoryUid: "" };
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  await world.reset();
  at.factoryUid = world.aFactory();
});
afterAll(() => world.stop());

const aRun = (init: Parameters<World["aRun"]>[0] = {}) => world.aRun({ factoryUid: at.factoryUid, ...init });
const one = async <R>(text: string): Promise<R | undefined> => (await world.rows<R>(text))[0];
const stale = () =>
  world.rows<{ run_uid: string; refresh_at: Date; failures: number }>(
    "SELECT run_uid, refresh_at, failures FROM stale_runs",
  );
const seconds = (count: number): Date => new Date(NOW.getTime() + count * 1000);

test("stores a run with its usage and pull requests", async () => {
  const run = aRun({
    createdAt: NOW,
    personFollowUps: 2,
    modelCalls: [modelCall({ costMicros: 4_500n })],
    pullRequests: [producedPullRequest()],
  });
  await world.settle();
  expect(await one("SELECT * FROM run_facts")).toMatchObject({
    run_uid: run.uid,
    team_uid: TEAM,
    factory_uid: at.factoryUid,
    root_run_uid: run.uid,
    parent_run_uid: null,
    created_at: NOW,
    finished_at: null,
    version: 1,
    state: "INPROGRESS",
    source: "API",
    agent_uid: run.agentUid,
    agent_name: "builder",
    agent_type: "IMPLEMENT",
    model_id: "model-large",
    harness: "claude",
    root_source: "API",
    creator_type: "user",
    creator_uid: run.costOwner!.creatorUid,
    person_follow_ups: 2,
  });
  expect(await world.rows("SELECT component, kind, micros, quantity, owner_run_uid FROM ledger_entries")).toEqual([
    {
      component: "inference",
      kind: "model_call",
      micros: 4_500,
      owner_run_uid: run.uid,
      quantity: {
        call_id: run.modelCalls[0]!.callId,
        model_id: "model-large-2",
        input_tokens: 1_000,
        output_tokens: 100,
      },
    },
  ]);
  expect(await one("SELECT * FROM factory_pull_requests")).toMatchObject({
    url_key: "github.com/acme/shop/pull/7",
    provider: "GITHUB",
    repo_full_name: "acme/shop",
    pr_number: 7,
    kickoff_run_uid: run.uid,
    inference_micros: 4_500,
  });
});

test("reads a run in progress again after a minute and a finished one two minutes after its end", async () => {
  const run = aRun({ createdAt: NOW });
  await world.settle();
  expect(await stale()).toEqual([{ run_uid: run.uid, refresh_at: seconds(60), failures: 0 }]);
  run.modelCalls.push(modelCall());
  world.clock.advance(60_000);
  await world.settle();
  expect(await one("SELECT count(*) AS entries FROM ledger_entries")).toEqual({ entries: 1 });
  world.orchestrator.change(run.uid, () => finishRun(run, world.clock.now()));
  await world.settle();
  expect(await stale()).toEqual([{ run_uid: run.uid, refresh_at: seconds(180), failures: 0 }]);
  run.computeIntervals.push(computeInterval());
  world.clock.advance(120_000);
  await world.settle();
  expect(await one("SELECT count(*) AS entries FROM ledger_entries")).toEqual({ entries: 2 });
  expect(await stale()).toEqual([]);
});

test("does not poll a run that waits for a worker", async () => {
  aRun({ state: "QUEUED" });
  await world.settle();
  expect(await stale()).toEqual([]);
});

test.each([
  ["of no factory", () => aRun({ factoryUid: "" })],
  ["of a person", () => aRun({ ownerType: "user" })],
  ["that the orchestrator does not know", () => world.orchestrator.runs.delete(aRun().uid)],
])("forgets a run %s", async (_, make) => {
  make();
  await world.settle();
  expect([await stale(), await world.rows("SELECT run_uid FROM run_facts")]).toEqual([[], []]);
});

test("charges compute and the platform by the prices in force", async () => {
  await world.rows(
    "INSERT INTO compute_prices VALUES (2, 40000, 5000, 250, '2026-11-18T00:00:00Z'), (3, 90000, 9000, 900, '2026-11-18T12:00:00Z')",
  );
  aRun({
    createdAt: new Date("2026-11-17T09:00:00Z"),
    computeIntervals: [
      computeInterval({ executionId: 1n, startedAt: new Date("2026-11-17T23:55:00Z") }),
      computeInterval({ executionId: 2n, startedAt: new Date("2026-11-18T00:00:00Z") }),
      computeInterval({ executionId: 3n, startedAt: new Date("2026-11-18T12:00:00Z"), vcpus: 0 }),
    ],
  });
  aRun({ createdAt: new Date("2026-11-18T09:00:00Z") });
  await world.settle();
  // 600 s of 2 vCPUs and 4 GB: 600 × (2 × 40,000 + 4 × 5,000) ÷ 3,600 = 16,666.67.
  expect(
    await world.rows("SELECT component, micros, price_version FROM ledger_entries ORDER BY occurred_at, component"),
  ).toEqual([
    { component: "compute", micros: 0, price_version: 1 },
    { component: "compute", micros: 16_667, price_version: 2 },
    { component: "platform", micros: 250, price_version: 2 },
    { component: "compute", micros: null, price_version: 3 },
  ]);
  expect(
    await one(
      "SELECT sum(compute_intervals)::int AS entries, sum(unpriced_compute_intervals)::int AS unpriced FROM cost_group_days WHERE dimension = 'source'",
    ),
  ).toEqual({ entries: 3, unpriced: 1 });
});

test("records a later price of a model call as an adjustment, once", async () => {
  const run = aRun({ modelCalls: [modelCall({ callId: "c-1", costMicros: undefined, priceVersion: undefined })] });
  await world.settle();
  for (const version of [1, 2]) {
    Object.assign(run.modelCalls[0]!, { costMicros: 700n, priceVersion: version });
    world.clock.advance(60_000);
    await world.settle();
  }
  expect(await world.rows("SELECT kind, micros, price_version FROM ledger_entries ORDER BY kind DESC")).toEqual([
    { kind: "model_call", micros: null, price_version: null },
    { kind: "adjustment", micros: 700, price_version: 1 },
  ]);
  expect(await one("SELECT sum(micros)::int AS micros FROM tree_costs")).toEqual({ micros: 700 });
});

test("gives inference of a shared conversation to its earliest run", async () => {
  const first = aRun({ modelId: "model-small" });
  aRun({ continues: first, modelCalls: [modelCall({ costMicros: 10n })], computeIntervals: [computeInterval()] });
  await world.settle();
  const trees = await world.rows(
    "SELECT component, model_id, root_run_uid = $1 AS is_first FROM tree_costs ORDER BY component DESC",
    [first.uid],
  );
  expect(trees).toEqual([
    { component: "inference", model_id: "model-small", is_first: true },
    { component: "compute", model_id: "model-large", is_first: false },
  ]);
});

test("does not replace a newer version by an older snapshot", async () => {
  const run = aRun({ createdAt: NOW });
  const older = clone(orchestrator.RunFactsSchema, run);
  world.orchestrator.change(run.uid, () => finishRun(run, NOW));
  await world.settle();
  world.orchestrator.answer = () => [older];
  world.orchestrator.publish(run.uid, "finished");
  await world.settle();
  expect(await world.rows("SELECT state, version FROM run_facts")).toEqual([{ state: "SUCCEEDED", version: 2 }]);
  expect(await world.rows("SELECT state, runs FROM run_days WHERE runs <> 0")).toEqual([
    { state: "SUCCEEDED", runs: 1 },
  ]);
});

test("stores nothing of a read during which the run was marked again, and reads it again", async () => {
  const run = aRun({ createdAt: NOW });
  const older = clone(orchestrator.RunFactsSchema, run);
  let reads = 0;
  world.orchestrator.answer = async (runs) => {
    reads += 1;
    if (reads > 1) return runs;
    world.orchestrator.change(run.uid, () => finishRun(run, NOW));
    for (const consumer of world.service.consumers) await consumer.drain();
    return [older];
  };
  await world.settle();
  expect([reads, await world.rows("SELECT state, version FROM run_facts")]).toEqual([
    2,
    [{ state: "SUCCEEDED", version: 2 }],
  ]);
});

test("stores nothing for a lease that was lost, although the versions are equal", async () => {
  const run = aRun({ createdAt: NOW, personFollowUps: 1 });
  const older = clone(orchestrator.RunFactsSchema, run);
  const other = world.replica();
  let reads = 0;
  world.orchestrator.answer = async (runs) => {
    reads += 1;
    if (reads > 1) return runs;
    world.clock.advance(30_000);
    run.personFollowUps = 5;
    await other.refreshDue();
    return [older];
  };
  await world.settle();
  expect([reads, await world.rows("SELECT person_follow_ups FROM run_facts")]).toEqual([2, [{ person_follow_ups: 5 }]]);
});

test("reads again what a process had claimed that died before its commit", async () => {
  const run = aRun({ createdAt: NOW, modelCalls: [modelCall()] });
  const dying = world.replica();
  world.orchestrator.answer = async () => {
    await dying.stop();
    return [run];
  };
  for (const consumer of world.service.consumers) await consumer.drain();
  await dying.refreshDue().catch(() => undefined);
  world.orchestrator.answer = (runs) => runs;
  expect(await world.rows("SELECT run_uid FROM run_facts")).toEqual([]);
  await world.service.refreshDue();
  expect(await world.rows("SELECT run_uid FROM run_facts")).toEqual([]); // the lease
  world.clock.advance(30_000);
  await world.service.refreshDue();
  expect(await one("SELECT run_uid, (SELECT count(*)::int FROM ledger_entries) AS entries FROM run_facts")).toEqual({
    run_uid: run.uid,
    entries: 1,
  });
});

test("tries a failed read again after growing pauses, of five minutes at most", async () => {
  const run = aRun({ createdAt: NOW });
  world.orchestrator.answer = () => {
    throw new DomainError({ kind: "unavailable", reason: "unavailable", message: "Later." });
  };
  const pauses: number[] = [];
  for (let tries = 0; tries < 11; tries += 1) {
    await world.settle();
    const [mark] = await stale();
    pauses.push((mark!.refresh_at.getTime() - world.clock.now().getTime()) / 1000);
    world.clock.set(mark!.refresh_at);
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  expect(
    world.log.entries.filter(({ level, fields }) => level === "warn" && fields.entityUid === run.uid),
  ).toHaveLength(11);
  world.orchestrator.answer = (runs) => runs;
  await world.settle();
  expect(await world.rows("SELECT run_uid FROM run_facts")).toEqual([{ run_uid: run.uid }]);
});

test("stores the others when the facts of one run cannot be stored", async () => {
  const [good, bad] = [
    aRun({ createdAt: NOW, state: "QUEUED" }),
    aRun({ createdAt: NOW, state: "QUEUED", conversationUid: "no uuid" }),
  ];
  await world.settle();
  expect([
    await world.rows("SELECT run_uid FROM run_facts"),
    (await stale()).map(({ run_uid, failures }) => ({ run_uid, failures })),
  ]).toEqual([[{ run_uid: good.uid }], [{ run_uid: bad.uid, failures: 1 }]]);
});

test("two replicas store every run once", async () => {
  const other = world.replica();
  const runs = Array.from({ length: 450 }, () =>
    runSnapshot({
      teamUid: TEAM,
      factoryUid: at.factoryUid,
      modelCalls: [modelCall({ costMicros: 1n })],
      pullRequests: [producedPullRequest()],
    }),
  );
  world.orchestrator.put(...runs);
  for (const consumer of world.service.consumers) await consumer.drain();
  await Promise.all([world.service.refreshDue(), other.refreshDue()]);
  expect(await one("SELECT count(*) AS runs FROM run_facts")).toEqual({ runs: 450 });
  expect(await one("SELECT sum(runs)::int AS runs FROM run_days")).toEqual({ runs: 450 });
  expect(
    await one("SELECT sum(inference_micros)::int AS micros FROM cost_group_days WHERE dimension = 'user'"),
  ).toEqual({ micros: 450 });
  expect(await one("SELECT inference_micros, jsonb_array_length(runs) AS runs FROM factory_pull_requests")).toEqual({
    inference_micros: 450,
    runs: 450,
  });
  expect(world.orchestrator.requests.flat().toSorted()).toEqual(runs.map(({ uid }) => uid).toSorted());
});

test("responses are complete up to the last read of the feed, or to the oldest change whose facts are not stored", async () => {
  const asOf = async () =>
    timestampDate((await world.metrics.getMetrics({ range: { factoryUid: at.factoryUid } }, call(OWNER))).scope!.asOf!);
  aRun({ createdAt: NOW });
  await world.settle();
  expect(await asOf()).toEqual(NOW);
  world.clock.advance(10_000);
  expect(await asOf()).toEqual(NOW);
  aRun({ createdAt: seconds(10) });
  for (const consumer of world.service.consumers) await consumer.drain();
  world.clock.advance(5_000);
  expect(await asOf()).toEqual(seconds(10));
  await world.settle();
  expect(await asOf()).toEqual(seconds(15));
});

test("reports work that is not done", async () => {
  const metrics = new Metrics();
  world.replica({ metrics });
  await enqueueWork(world.t.database.sql, { kind: RECORD_DELIVERY, key: newUid(), payload: null });
  expect(await metrics.text()).toContain(
    `millwright_work_items{service="metrics",kind="${RECORD_DELIVERY}",state="waiting"} 1`,
  );
});

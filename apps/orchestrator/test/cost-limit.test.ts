import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { assignmentMessage } from "../src/leases/rpc/worker-messages.ts";
import { DEFAULT_TIMINGS } from "../src/runs/domain/timings.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";

/** A model whose tokens cost one micro-dollar each. */
const MODEL = "priced";
const CHILDREN = 8;

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeEach(async () => {
  p = await catalogPlatform();
  await p.database.sql.query(
    "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ($1, 1, 1000000, 1000000)",
    [MODEL],
  );
  caller = aCaller();
  worker = await p.worker({ slots: CHILDREN + 2 });
});
afterEach(() => p.close());

const reserve = async (execution: ActiveExecution, tokens: number, modelId = MODEL) =>
  p.workers.reserveCost({ ...execution.lease, modelId, inputTokens: 0n, outputTokens: BigInt(tokens) }, bearer(worker));
const report = (execution: ActiveExecution, callId: string, tokens: number) =>
  p.workers.reportUsage(
    { ...execution.lease, callId, modelId: MODEL, usage: { inputTokens: 0n, outputTokens: BigInt(tokens) } },
    bearer(worker),
  );
const outcomes = async (all: readonly ActiveExecution[], tokens: number) =>
  (await Promise.all(all.map((execution) => reserve(execution, tokens)))).map(({ outcome }) => outcome).toSorted();

async function aTree(
  config: object,
  childConfig: object = {},
): Promise<{ root: ActiveExecution; children: ActiveExecution[] }> {
  const run = await p.run(caller, { config: config as never });
  const root = await startExecution(p, worker);
  const children: ActiveExecution[] = [];
  for (let n = 0; n < CHILDREN; n += 1) {
    await p.run(caller, { parentRunUid: run.uid, config: childConfig as never });
    children.push(await startExecution(p, worker));
  }
  return { root, children };
}

test("concurrent runs share the rest of the limit above them, and exceed it by less than one call", async () => {
  const { root, children } = await aTree({ cost_limit_usd: 0.001 });
  expect(await outcomes(children, 300)).toEqual([
    ...Array.from({ length: 4 }, () => "granted"),
    ...Array.from({ length: 4 }, () => "wait"),
  ]);
  const granted: ActiveExecution[] = [];
  for (const child of children) if ((await reserve(child, 300)).outcome === "granted") granted.push(child);
  expect(granted).toHaveLength(4); // repeating a reservation changes nothing
  for (const child of granted.slice(0, 3)) await report(child, "c1", 250);
  expect((await reserve(root, 300)).outcome).toBe("wait"); // 750 spent, 300 reserved
  await report(granted[3]!, "c1", 249);
  expect((await reserve(root, 300)).outcome).toBe("granted"); // 999 spent
  await report(root, "c1", 300);
  for (const execution of [root, ...children])
    expect(await reserve(execution, 1)).toMatchObject({
      outcome: "exceeded",
      message: expect.stringContaining("have cost $0.001299; the cost limit is $0.001."),
    });
});

test("a limit of one child run does not limit the others", async () => {
  const { root, children } = await aTree({ cost_limit_usd: 1 }, { cost_limit_usd: 0.0001 });
  await report(children[0]!, "c1", 100);
  expect(await reserve(children[0]!, 1)).toMatchObject({
    outcome: "exceeded",
    message: "This run and its descendants have cost $0.0001; the cost limit is $0.0001.",
  });
  expect([(await reserve(children[1]!, 1)).outcome, (await reserve(root, 1)).outcome]).toEqual(["granted", "granted"]);
});

test("releases the reservation of an execution that ended without the call", async () => {
  const { root, children } = await aTree({ cost_limit_usd: 0.001 });
  expect([(await reserve(children[0]!, 1_000)).outcome, (await reserve(root, 1)).outcome]).toEqual(["granted", "wait"]);
  await children[0]!.complete("FAILED", {
    error: { code: "resource_unavailable", message: "No answer.", retryable: true, reason: "model_unavailable" },
  });
  expect((await reserve(root, 1)).outcome).toBe("granted");
});

test("reserves nothing without a limit; under a limit a model without a price cannot be called", async () => {
  await p.run(caller);
  const free = await startExecution(p, worker);
  expect((await reserve(free, 1_000, "unknown")).outcome).toBe("granted");
  expect((await p.database.sql.query("SELECT 1 FROM cost_reservations")).rowCount).toBe(0);
  await p.run(caller, { config: { cost_limit_usd: 1 } });
  await expect(reserve(await startExecution(p, worker), 1, "unknown")).rejects.toEqual(
    domainError({ reason: "cost_limit_unpriced" }),
  );
});

test("workers receive the limits of a run, and for a child whether it is under one", async () => {
  const { root, children } = await aTree({ cost_limit_usd: 1, step_limit: 7, token_limit: 5_000 });
  const messageFor = (execution: ActiveExecution, platformLimit = 0) =>
    assignmentMessage(execution.assignment, DEFAULT_TIMINGS, platformLimit);
  expect(messageFor(root)).toMatchObject({ costLimited: true, stepLimit: 7, tokenLimit: 5_000n });
  expect(messageFor(root, 1_000)).toMatchObject({ tokenLimit: 1_000n });
  expect(messageFor(children[0]!)).toMatchObject({ costLimited: true, stepLimit: 200, tokenLimit: 0n });
  await p.run(caller);
  expect(messageFor(await startExecution(p, worker), 1_000)).toMatchObject({
    costLimited: false,
    stepLimit: 200,
    tokenLimit: 1_000n,
  });
});

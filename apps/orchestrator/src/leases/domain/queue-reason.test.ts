import { expect, test } from "@jest/globals";
import { explainQueue, type QueueFacts } from "./queue-reason.ts";

const facts = (overrides: Partial<QueueFacts>): QueueFacts => ({
  state: "QUEUED",
  isWaiting: false,
  awaitedCount: 0,
  position: 1,
  harness: "oz",
  pausedScopes: [],
  fullScopes: [],
  isStopping: false,
  workers: 1,
  matchingWorkers: 1,
  freeSlots: 1,
  ...overrides,
});

test.each<[Partial<QueueFacts>, string]>([
  [{ workers: 0, matchingWorkers: 0, fullScopes: ["team"] }, "no_workers"],
  [{ matchingWorkers: 0, workerHost: "mac" }, "no_matching_worker"],
  [{ matchingWorkers: 0, image: "node:24", pausedScopes: ["team"] }, "no_matching_worker"],
  [{ pausedScopes: ["factory"], fullScopes: ["team"] }, "paused"],
  [{ pausedScopes: ["factory"], exhaustedBudget: "Nothing is left." }, "paused"],
  [{ exhaustedBudget: "Nothing is left.", isStopping: true, fullScopes: ["team"], freeSlots: 0 }, "budget_exhausted"],
  [{ isStopping: true, fullScopes: ["team"] }, "stopping"],
  [{ fullScopes: ["agent", "team"], freeSlots: 0 }, "team_cap"],
  [{ fullScopes: ["agent"] }, "agent_cap"],
  [{ fullScopes: ["factory"] }, "factory_cap"],
  [{ freeSlots: 0 }, "workers_busy"],
  [{ position: 3, freeSlots: 0 }, "workers_busy"],
  [{ position: 3 }, "behind_others"],
  [{}, "none"],
  [{ state: "PENDING", workers: 0 }, "none"],
  [{ state: "INPROGRESS", isWaiting: true, awaitedCount: 2 }, "waiting_for_children"],
  [{ state: "SUCCEEDED" }, "none"],
])("%j waits for %s", (overrides, reason) => expect(explainQueue(facts(overrides)).reason).toBe(reason));

test("only a queued run has a position", () => {
  expect(explainQueue(facts({ position: 3 }))).toMatchObject({
    position: 3,
    message: "2 other runs of the same owner are served first.",
  });
  expect(explainQueue(facts({ state: "PENDING" })).position).toBeUndefined();
});

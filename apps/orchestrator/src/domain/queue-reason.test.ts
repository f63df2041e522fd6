import { expect, test } from "@jest/globals";
import { explainQueue, type QueueFacts } from "./queue-reason.ts";

const facts = (some: Partial<QueueFacts>): QueueFacts => ({
  state: "QUEUED", isWaiting: false, awaitedCount: 0, position: 3, harness: "oz", fullScopes: [], workers: 1, matchingWorkers: 1, freeSlots: 1, ...some,
});

test.each<[Partial<QueueFacts>, string]>([
  [{ workers: 0, matchingWorkers: 0, fullScopes: ["team"] }, "no_workers"],
  [{ matchingWorkers: 0, workerHost: "mac" }, "no_matching_worker"],
  [{ fullScopes: ["agent", "team"], freeSlots: 0 }, "team_cap"],
  [{ fullScopes: ["agent"] }, "agent_cap"],
  [{ fullScopes: ["factory"] }, "factory_cap"],
  [{ freeSlots: 0 }, "workers_busy"],
  [{}, "none"],
  [{ state: "PENDING", workers: 0 }, "none"],
  [{ state: "INPROGRESS", isWaiting: true, awaitedCount: 2 }, "waiting_for_children"],
  [{ state: "SUCCEEDED" }, "none"],
])("%j waits for %s", (some, reason) => expect(explainQueue(facts(some)).reason).toBe(reason));

test("only a queued run has a position", () => {
  expect(explainQueue(facts({})).position).toBe(3);
  expect(explainQueue(facts({ state: "PENDING" })).position).toBeUndefined();
});

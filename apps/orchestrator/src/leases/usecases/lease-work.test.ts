import { expect, test } from "@jest/globals";
import type { Offer, WorkerSession } from "../../runs/domain/worker-session.ts";
import { Wakeups, topics } from "../../storage/wakeups.ts";
import { LeaseWork } from "./lease-work.ts";

const session = (uid: string) => ({ uid, state: "READY" }) as WorkerSession;

/** Polls for work of a queue, which counts the claims. */
function aQueue(queuedCount: number) {
  const queue = { queuedCount, claimCount: 0 };
  const wakeups = new Wakeups();
  const leaseWork = new LeaseWork({
    hasQueued: async () => queue.queuedCount > 0,
    claim: async () => {
      queue.claimCount += 1;
      return queue.queuedCount-- > 0 ? [{ executionId: queue.queuedCount } as Offer] : [];
    },
    decline: async () => undefined,
    wakeups,
    pollMs: 3_600_000,
    waitMsMax: 3_600_000,
  });
  const ended = new AbortController();
  const poll = (uid: string) => leaseWork.lease(session(uid), 1, 3_600_000, ended.signal);
  return { queue, wakeups, leaseWork, poll, end: () => ended.abort() };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("one of the waiting polls claims while the queue is empty, and all stop claiming when it is empty again", async () => {
  const { queue, wakeups, leaseWork, poll } = aQueue(0);
  const polls = ["a", "b", "c", "d"].map(poll);
  await turn();
  expect(queue.claimCount).toBeLessThan(polls.length);
  queue.claimCount = 0;
  queue.queuedCount = 2;
  wakeups.notify(new Set([topics.work]));
  expect(await Promise.all(polls.slice(0, 2))).toEqual([[{ executionId: 1 }], [{ executionId: 0 }]]);
  await turn();
  expect(queue.claimCount).toBe(3);
  leaseWork.stop();
  expect(await Promise.all(polls.slice(2))).toEqual([[], []]);
});

test("a session waits until its newest poll has ended", async () => {
  const { leaseWork, poll, end } = aQueue(0);
  expect(leaseWork.isWaiting("a")).toBe(false);
  const polls = [poll("a"), poll("a")];
  expect([leaseWork.isWaiting("a"), leaseWork.isWaiting("b")]).toEqual([true, false]);
  end();
  await Promise.all(polls);
  expect(leaseWork.isWaiting("a")).toBe(false);
  leaseWork.stop();
});

import { describe, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { DirectiveQueue } from "./directive-queue.ts";

function aQueue() {
  const seen: string[] = [];
  const queue = new DirectiveQueue({
    onCancel: (reason) => void seen.push(`cancel ${reason}`),
    onError: (error) => void seen.push(`error ${(error as Error).message}`),
  });
  const deliver = (seq: bigint, directive: worker.Directive["directive"]) =>
    queue.deliver(create(worker.DirectiveSchema, { seq, executionId: 1n, attempt: 1, directive }));
  return { seen, queue, deliver };
}
const followup = (uid: string) => ({
  case: "followup" as const,
  value: create(worker.FollowupSchema, { message: { uid } }),
});
const interrupt = (turnId: string) => ({
  case: "interrupt" as const,
  value: create(worker.InterruptSchema, { turnId }),
});
const cancel = { case: "cancel" as const, value: create(worker.CancelSchema, { reason: "enough" }) };

describe("directives", () => {
  test("are handled in order while one of them waits for its handler; only cancel overtakes", () => {
    const { seen, queue, deliver } = aQueue();
    queue.onInterrupt((turnId) => void seen.push(`interrupt ${turnId}`));
    deliver(1n, followup("a"));
    deliver(2n, interrupt("t"));
    deliver(3n, cancel);
    expect(seen).toEqual(["cancel enough"]);
    queue.onFollowup((message) => void seen.push(`followup ${message.uid}`));
    expect(seen).toEqual(["cancel enough", "followup a", "interrupt t"]);
  });

  test("are acknowledged up to the first that is not handled", async () => {
    const { queue, deliver } = aQueue();
    queue.onInterrupt(() => {});
    queue.onFollowup(() => {});
    expect(queue.ackedSeq).toBe(0n);
    deliver(4n, followup("a"));
    deliver(5n, interrupt("t"));
    await Promise.resolve();
    expect(queue.ackedSeq).toBe(3n);
    queue.ack(4n);
    await Promise.resolve();
    expect(queue.ackedSeq).toBe(5n);
  });

  test("with a seq that is not above the last are dropped", () => {
    const { seen, queue, deliver } = aQueue();
    queue.onFollowup((message) => void seen.push(message.uid));
    for (const [seq, uid] of [
      [2n, "a"],
      [2n, "a again"],
      [1n, "late"],
      [3n, "b"],
    ] as const)
      deliver(seq, followup(uid));
    expect(seen).toEqual(["a", "b"]);
  });

  test("whose handler fails, and unknown ones, are acknowledged", async () => {
    const { seen, queue, deliver } = aQueue();
    queue.onInterrupt(() => Promise.reject(new Error("no turn")));
    deliver(1n, interrupt("t"));
    deliver(2n, { case: undefined });
    await new Promise(setImmediate);
    expect([seen, queue.ackedSeq]).toEqual([["error no turn"], 2n]);
  });
});

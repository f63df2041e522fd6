import { expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { createLogger } from "@millwright/telemetry";
import { array, assert, constant, constantFrom, integer, nat, oneof, property, record } from "fast-check";
import { DirectiveQueue } from "./directive-queue.ts";
import { Executions } from "./executions.ts";
import type { ActiveExecution } from "./active-execution.ts";

const LEASE = { executionId: 1n, attempt: 2 };

/** One accepted execution and the platform that sends follow-ups to it. The test determines the order of arrivals. */
class Delivery {
  readonly handled: string[] = [];
  readonly #sent: worker.Directive[] = [];
  readonly #queue = new DirectiveQueue({
    onCancel: () => {},
    onError: (error) => {
      throw error as Error;
    },
  });
  readonly #executions = new Executions({
    slots: 1,
    log: createLogger({ service: "worker", level: "silent" }),
    createExecution: () => this.#execution(),
    onDrain: () => {},
    fetchDirectives: () => (this.isFetchDue = true),
  });
  #seq: bigint;
  #ackedByPlatform = 0n;
  #hasBegun = false;
  isFetchDue = false;

  /** `firstSeq`: earlier attempts used the numbers below it. */
  constructor(firstSeq: number) {
    this.#seq = BigInt(firstSeq) - 1n;
  }

  /** Makes the platform store a follow-up. Skipped numbers belong to directives of an earlier attempt. */
  send(skipped: number): void {
    this.#seq += 1n + BigInt(this.#sent.length === 0 ? skipped : 0);
    const directive = {
      case: "followup" as const,
      value: create(worker.FollowupSchema, { message: { uid: `m${this.#sent.length}` } }),
    };
    this.#sent.push(
      create(worker.DirectiveSchema, {
        ...LEASE,
        seq: this.#seq,
        previousSeq: this.#sent.at(-1)?.seq ?? 0n,
        directive,
      }),
    );
  }

  /** Delivers one of them on the stream: late, repeated, before an earlier one, or without an earlier one. */
  stream(index: number): void {
    const directive = this.#sent[index % Math.max(1, this.#sent.length)];
    if (directive) this.#executions.route(directive, "stream");
  }

  /** Sends a heartbeat, which acknowledges directives and delivers all unacknowledged ones. */
  heartbeat(): void {
    this.isFetchDue = false;
    if (this.#hasBegun && this.#queue.ackedSeq > this.#ackedByPlatform) this.#ackedByPlatform = this.#queue.ackedSeq;
    for (const directive of this.#sent.filter(({ seq }) => seq > this.#ackedByPlatform))
      this.#executions.route(directive, "heartbeat");
  }

  /** Delivers the response to Accept. */
  begin(): void {
    if (!this.#hasBegun)
      this.#executions.begin([create(worker.AssignmentSchema, LEASE)], { monotonicMs: 0, wallMs: 0 });
    this.#hasBegun = true;
  }

  /** Sets the handler of follow-ups. */
  attach(): void {
    this.#queue.onFollowup((message, seq) => {
      this.handled.push(message.uid);
      this.#queue.ack(seq);
    });
  }

  get sent(): string[] {
    return this.#sent.map((_, index) => `m${index}`);
  }

  get isAcknowledged(): boolean {
    return this.#sent.every(({ seq }) => seq <= this.#ackedByPlatform);
  }

  #execution(): ActiveExecution {
    const execution = {
      deliver: (directive: worker.Directive) => this.#queue.deliver(directive),
      run: () => new Promise<void>(() => {}),
    };
    return execution as unknown as ActiveExecution;
  }
}

const action = oneof(
  { weight: 3, arbitrary: record({ does: constant("send" as const), n: nat(3) }) },
  { weight: 4, arbitrary: record({ does: constant("stream" as const), n: nat(20) }) },
  { weight: 1, arbitrary: record({ does: constantFrom("heartbeat", "begin", "attach"), n: constant(0) }) },
);

test("follow-ups are applied once and in the order of acceptance, whatever arrives before, during and after Accept", () => {
  assert(
    property(integer({ min: 1, max: 9 }), array(action, { maxLength: 40 }), (firstSeq, actions) => {
      const delivery = new Delivery(firstSeq);
      for (const { does, n } of actions) {
        if (does === "send") delivery.send(n);
        else if (does === "stream") delivery.stream(n);
        else delivery[does]();
        expect(delivery.handled).toEqual(delivery.sent.slice(0, delivery.handled.length));
      }
      delivery.begin();
      delivery.attach();
      delivery.heartbeat();
      delivery.heartbeat();
      expect(delivery.handled).toEqual(delivery.sent);
      expect(delivery.isAcknowledged).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("a directive that follows a gap is rejected and fetched with the missing one", () => {
  const delivery = new Delivery(1);
  delivery.begin();
  delivery.attach();
  for (let n = 0; n < 3; n++) delivery.send(0);
  delivery.stream(1);
  expect([delivery.handled, delivery.isFetchDue]).toEqual([[], true]);
  delivery.heartbeat();
  expect([delivery.handled, delivery.isFetchDue]).toEqual([["m0", "m1", "m2"], false]);
});

test("a directive that arrives before the response of Accept is fetched when the execution starts", () => {
  const delivery = new Delivery(1);
  delivery.send(0);
  delivery.stream(0);
  expect(delivery.isFetchDue).toBe(false);
  delivery.begin();
  expect(delivery.isFetchDue).toBe(true);
});

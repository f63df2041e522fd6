import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { LeaseLost } from "../context/execution-errors.ts";
import type { Coalescer } from "../protocol/coalescer.ts";
import { retrying, type RetryDeps } from "../protocol/retrying.ts";
import { fitPayload } from "./event-payload.ts";
import type { EventSpool } from "./event-spool.ts";
import type { Masker } from "./masker.ts";

export type EventStreamDeps = RetryDeps & {
  readonly lease: { readonly executionId: bigint; readonly attempt: number };
  readonly spool: EventSpool;
  readonly masker: Masker;
  readonly appends: Coalescer<worker.EventBatch, worker.AppendResult>;
  readonly clock: Clock;
  /**
   * Called if no more events can be delivered: the lease is lost (`LeaseLost`), or the platform rejects them
   * (`DomainError`).
   */
  readonly onBroken: (error: DomainError) => void;
};

type Waiter = { readonly seq: number; readonly resolve: () => void; readonly reject: (error: unknown) => void };

/** Delivers the events of one attempt to the platform: in order, without duplicates or gaps. */
export class EventStream {
  readonly #deps: EventStreamDeps;
  readonly #ended = new AbortController();
  #isSending = false;
  #waiters: Waiter[] = [];

  constructor(deps: EventStreamDeps) {
    this.#deps = deps;
  }

  /** The number of the last event that the platform has received or will receive. */
  get lastSeq(): number {
    return this.#ended.signal.aborted ? this.#deps.spool.ackedSeq : this.#deps.spool.lastSeq;
  }

  /** Whether events can no longer be delivered. */
  get isBroken(): boolean {
    return this.#ended.signal.aborted;
  }

  /**
   * Masks, truncates, spools and sends an event. After the end, the event is dropped. Throws `spool_failed` if the disk
   * fails.
   */
  emit(kind: string, payload: JsonObject): void {
    if (this.#ended.signal.aborted) return;
    const { clock, masker, spool } = this.#deps;
    try {
      spool.append({
        atMs: clock.now().getTime(),
        kind,
        payload: fitPayload(isFromPlatform(kind, payload) ? payload : masker.payload(payload)),
      });
    } catch (cause) {
      throw new DomainError({
        kind: "unavailable",
        reason: "spool_failed",
        message: "The worker could not write its event spool.",
        cause,
      });
    }
    void this.#send();
  }

  /** Resolves when everything emitted so far is acknowledged. Rejects with the reason if that is not possible. */
  flushed(): Promise<void> {
    const { spool, appends } = this.#deps;
    return new Promise((resolve, reject) => {
      if (this.#ended.signal.aborted) return reject(this.#ended.signal.reason as Error);
      if (!spool.hasPending) return resolve();
      this.#waiters.push({ seq: spool.lastSeq, resolve, reject });
      appends.flush();
    });
  }

  /** Stops sending. Waiting callers receive the reason. */
  end(reason: Error): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(reason);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(reason);
  }

  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#deps.spool.hasPending && !this.#ended.signal.aborted)
        await retrying(this.#deps, this.#ended.signal, () => this.#sendBatch());
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#fail(error as DomainError);
    } finally {
      this.#isSending = false;
    }
  }

  async #sendBatch(): Promise<void> {
    const { appends, spool } = this.#deps;
    const sending = appends.send(() => this.#batch());
    if (this.#waiters.length > 0) appends.flush();
    const result = await sending;
    if (this.#ended.signal.aborted) return;
    if (result.error === "LEASE_LOST") throw new LeaseLost();
    const ackedBefore = spool.ackedSeq;
    // Also after a SEQUENCE_GAP: the next batch starts at the platform's position.
    spool.acknowledge(Number(result.ackedClientSeq));
    if (spool.ackedSeq === ackedBefore) throw noProgress(result, ackedBefore);
    this.#waiters = this.#waiters.filter((waiter) => {
      if (waiter.seq > spool.ackedSeq) return true;
      waiter.resolve();
      return false;
    });
  }

  #batch(): worker.EventBatch {
    const { lease, spool } = this.#deps;
    const events = spool.nextBatch().map(({ clientSeq, atMs, kind, payload }) => ({
      clientSeq: BigInt(clientSeq),
      at: timestampFromMs(atMs),
      kind,
      payload,
    }));
    return create(worker.EventBatchSchema, { ...lease, events });
  }

  #fail(failure: DomainError): void {
    const error = failure.reason === "lease_lost" ? new LeaseLost() : failure;
    this.end(error);
    this.#deps.onBroken(error);
  }
}

/**
 * Returns the error of an append that acknowledged nothing. If the platform's position is before what it had
 * acknowledged, those events are lost permanently; otherwise the error may be transient.
 */
function noProgress(result: worker.AppendResult, ackedBefore: number): DomainError {
  return new DomainError({
    kind: "unavailable",
    reason: "append_without_progress",
    message: `The platform acknowledged nothing${result.error === "" ? "" : ` (${result.error})`}.`,
    retryable: result.ackedClientSeq >= ackedBefore || result.error === "",
  });
}

/**
 * Returns whether the event is a user message. User messages are not masked: they came from the platform unchanged, and
 * the next execution reads its script from them, so `npm test` must remain even if it contains a secret.
 */
const isFromPlatform = (kind: string, payload: JsonObject): boolean => kind === "message" && payload["role"] === "user";

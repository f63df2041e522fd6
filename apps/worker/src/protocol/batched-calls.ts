import type { CallOptions } from "@connectrpc/connect";
import type { worker } from "@millwright/contracts";
import { outsideScopes } from "@millwright/telemetry";
import type { Timers } from "../time/timers.ts";
import type { WorkerClient } from "./client.ts";
import { Coalescer } from "./coalescer.ts";
import type { LeaseRef } from "./offer.ts";

/** The maximum number of executions whose batches share one call. */
const EXECUTIONS_MAX = 8;

export type BatchedCalls = {
  readonly appends: Coalescer<worker.EventBatch, worker.AppendResult>;
  readonly completions: Coalescer<worker.Completion, worker.CompletionResult>;
};

/** Returns the calls in which several executions share one request. */
export const batchedCalls = (
  client: Pick<WorkerClient, "appendEvents" | "complete">,
  timers: Timers,
  options: () => CallOptions,
): BatchedCalls => ({
  appends: new Coalescer({
    timers,
    itemsMax: EXECUTIONS_MAX,
    sendAll: (batches) =>
      outsideScopes(async () => inOrder(batches, (await client.appendEvents({ batches }, options())).results)),
  }),
  completions: new Coalescer({
    timers,
    itemsMax: EXECUTIONS_MAX,
    sendAll: (completions) =>
      outsideScopes(async () => inOrder(completions, (await client.complete({ completions }, options())).results)),
  }),
});

/**
 * Orders the results by the items they belong to. The platform may return them in any order; a missing result is
 * undefined.
 */
const inOrder = <O extends LeaseRef>(items: readonly LeaseRef[], results: readonly O[]): (O | undefined)[] =>
  items.map((item) =>
    results.find((result) => result.executionId === item.executionId && result.attempt === item.attempt),
  );

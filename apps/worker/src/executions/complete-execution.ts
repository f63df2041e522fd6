import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { LeaseLost } from "../context/execution-errors.ts";
import type { ExecutionResult } from "../context/execution-context.ts";
import type { Coalescer } from "../protocol/coalescer.ts";
import { retrying, type RetryDeps } from "../protocol/retrying.ts";
import type { EventStream } from "../spool/event-stream.ts";
import type { Masker } from "../spool/masker.ts";

export type Completions = Coalescer<worker.Completion, worker.CompletionResult>;

export type CompleteDeps = RetryDeps & {
  readonly lease: { readonly executionId: bigint; readonly attempt: number };
  readonly events: EventStream;
  readonly masker: Masker;
  readonly completions: Completions;
};

/**
 * Reports how the attempt ended, after all its events. Idempotent: after a lost response the call is retried.
 * `retained`: the setup has failed, and the workspace is retained for the debug window. `parkedMs`: how long the
 * workspace is retained. Throws `LeaseLost`, the reason of `signal` or the platform's permanent rejection.
 */
export async function completeExecution(
  deps: CompleteDeps,
  result: ExecutionResult,
  signal: AbortSignal,
  more: { readonly retained?: boolean; readonly parkedMs?: number } = {},
): Promise<void> {
  if (!deps.events.isBroken) await deps.events.flushed();
  await retrying(deps, signal, async () => {
    const { error } = await deps.completions.send(() => completionOf(deps, result, more));
    if (error === "LEASE_LOST") throw new LeaseLost();
    // The platform had acknowledged all of these events. This attempt's history cannot be repaired; the next attempt
    // records it again.
    if (error === "EVENTS_PENDING")
      throw new DomainError({
        kind: "conflict",
        reason: "events_pending",
        message: "The platform lacks events it had acknowledged.",
      });
  });
}

/**
 * The maximum number of characters of each text in a completion; more than the platform displays. The run's events
 * contain the whole text.
 */
const TEXT_CHARACTERS_MAX = 16_384;

/**
 * Returns the completion of an execution. Its texts are for users and may quote the output of commands, so they are
 * masked like events.
 */
const completionOf = (
  { lease, events, masker }: CompleteDeps,
  result: ExecutionResult,
  { retained = false, parkedMs = 0 }: { readonly retained?: boolean; readonly parkedMs?: number },
): worker.Completion =>
  create(worker.CompletionSchema, {
    ...lease,
    outcome: result.outcome,
    retained,
    parkedMs,
    lastClientSeq: BigInt(events.lastSeq),
    snapshotKey: result.snapshotKey ?? "",
    workspaceUnchanged: result.isWorkspaceUnchanged ?? false,
    message: masker.text(result.message ?? "").slice(0, TEXT_CHARACTERS_MAX),
    error: result.error && {
      ...result.error,
      message: masker.text(result.error.message).slice(0, TEXT_CHARACTERS_MAX),
    },
    waitFor: result.waitFor && { policy: result.waitFor.policy, runUids: [...result.waitFor.runUids] },
  });

import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { LeaseLost } from "./execution-errors.ts";
import type { ExecutionResult } from "./execution-context.ts";
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
 * Reports how the attempt ended, after all its events. Idempotent, so a lost response is simply retried. `retained`:
 * its setup has failed, and its workspace is retained for the debug window. `parkedMs`: how long its workspace is
 * retained. Errors: `LeaseLost`, the reason of `signal`, or the platform's final rejection.
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
    // The platform had acknowledged all of them: this attempt's history cannot be repaired, the next one records it
    // again.
    if (error === "EVENTS_PENDING")
      throw new DomainError({
        kind: "conflict",
        reason: "events_pending",
        message: "The platform lacks events it had acknowledged.",
      });
  });
}

/** Of each text of a completion, in characters: more than the platform shows. The whole text is in the run's events. */
const TEXT_CHARACTERS_MAX = 16_384;

/** Its texts are for people, and may quote output of commands, so they are masked like events. */
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
    ...(result.error
      ? { error: { ...result.error, message: masker.text(result.error.message).slice(0, TEXT_CHARACTERS_MAX) } }
      : {}),
    ...(result.waitFor ? { waitFor: { policy: result.waitFor.policy, runUids: [...result.waitFor.runUids] } } : {}),
  });

import { buffer } from "node:stream/consumers";
import type { BlobStore } from "@millwright/blobs";
import { actorOf, type Caller } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import { attachmentKey } from "../../storage/domain/blob-keys.ts";
import { JUDGE_SOURCE } from "../domain/judge.ts";
import type { Attachment } from "../domain/message.ts";
import type { NewAttachment } from "../domain/new-run.ts";
import type { ScopeSettings } from "../../catalog/domain/queue-settings.ts";
import type { FrozenConfig, ResolvedRun, ResolveRunRequest } from "../domain/resolved-run.ts";
import { isTerminal, type Run } from "../domain/run.ts";
import { createRuns, type Created, type CreateRunsDeps } from "./create-runs.ts";
import { requireRunVerb } from "./run-access.ts";

export type RetryRunDeps = CreateRunsDeps & {
  /** Errors: run_not_found. */
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  findFrozen(runUid: string): Promise<FrozenConfig | undefined>;
  /** Returns the files that were sent with a run's prompt. */
  promptFiles(runUid: string): Promise<readonly Attachment[]>;
  readonly blobs: CreateRunsDeps["blobs"] & Pick<BlobStore, "get">;
  /** Returns the current settings of the scopes whose capacity a run uses. Errors: agent_not_found. */
  resolveQueueSettings(caller: Caller, request: Pick<ResolveRunRequest, "owner" | "agentUid">): Promise<ScopeSettings>;
};

export type RetryRequest = {
  readonly runUid: string;
  /** A repeated request of the same principal with the same key returns the first result for 24 hours. */
  readonly idempotencyKey?: string;
  /** Identifies the tool call of a run. A repeated request returns the first result, without a time limit. */
  readonly causeKey?: string;
};

/**
 * Retries a run that has ended: creates a new run with the frozen configuration of the first, its prompt as submitted
 * and its files, in a new conversation and a new workspace. The caller is the creator of the new run. The run acts as
 * the same agent or, without an agent, as its creator. If the caller is a run, the new run is its child.
 *
 * Errors: run_not_found · not_authorized · run_not_finished (conflict) · operation_not_supported (unsupported: a local
 * run, a judge run) · agent_not_found · factory_closed, idempotency_mismatch (conflict).
 */
export async function retryRun(
  deps: RetryRunDeps,
  caller: Caller,
  { runUid, ...keys }: RetryRequest,
): Promise<Created> {
  const run = requireRunVerb(caller, await deps.getVisibleRun(caller, runUid), "run.create");
  const request = {
    ...{
      prompt: run.submittedPrompt ?? run.prompt,
      title: run.title,
      config: run.agentConfig,
      mode: run.mode,
      owner: run.owner,
    },
    ...{ interactive: run.interactive, metadata: run.metadata, source: "API", retryOfRunUid: run.uid },
    attachments: await filesOf(deps, run.uid),
    parentRunUid: caller.run?.runUid,
    ...keys,
  };
  const [created] = await createRuns({ ...deps, resolveRun: () => resolveAgain(deps, caller, run) }, caller, [request]);
  return created!;
}

async function resolveAgain(deps: RetryRunDeps, caller: Caller, run: Run): Promise<ResolvedRun> {
  checkRetryable(run);
  const { owner, agentConfig, agentUid, agentSkill: skill } = run;
  const [frozen, queueSettings] = await Promise.all([
    deps.findFrozen(run.uid),
    deps.resolveQueueSettings(caller, { owner, agentUid }),
  ]);
  if (!frozen) throw notFound("run");
  return { agentConfig, frozen, queueSettings, skill, executorUid: agentUid ?? actorOf(caller).uid };
}

function checkRetryable({ state, executionLocation, source }: Run): void {
  if (source === JUDGE_SOURCE)
    throw new DomainError({
      kind: "unsupported",
      reason: "operation_not_supported",
      message: "A judge run cannot be retried. Dispatch its scorer again.",
    });
  if (!isTerminal(state))
    throw new DomainError({
      kind: "conflict",
      reason: "run_not_finished",
      message: "The run has not finished. Send it a follow-up, or cancel it first.",
    });
  if (executionLocation === "LOCAL") {
    throw new DomainError({
      kind: "unsupported",
      reason: "operation_not_supported",
      message: "This run was executed by its client. Start it there again.",
    });
  }
}

const filesOf = async (deps: Pick<RetryRunDeps, "promptFiles" | "blobs">, runUid: string): Promise<NewAttachment[]> =>
  Promise.all(
    (await deps.promptFiles(runUid)).map(async (file) => ({
      fileName: file.fileName,
      mimeType: file.mimeType,
      data: await bytesOf(deps, attachmentKey(file)),
    })),
  );

/** Throws an internal error if the blob that a row references is missing. */
async function bytesOf({ blobs }: Pick<RetryRunDeps, "blobs">, key: string): Promise<Uint8Array> {
  const blob = await blobs.get(key);
  if (!blob) throw new Error(`the file ${key} is missing`);
  return buffer(blob.body);
}

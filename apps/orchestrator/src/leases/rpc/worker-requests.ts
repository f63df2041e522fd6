import { leaseRef } from "./worker-messages.ts";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { worker } from "@millwright/contracts";
import { DomainError, invalidArgument } from "@millwright/errors";
import {
  EVENT_BATCH_BYTES_MAX,
  EVENT_BATCH_MAX,
  EVENT_BYTES_MAX,
  isWorkerEventKind,
} from "../../runs/domain/run-events.ts";
import type { Outcome } from "../../runs/domain/run.ts";
import { storable, storableJson } from "../../runs/domain/text.ts";
import { isSkillFile, readRepository, SKILL_LIMITS, type RepositorySkill } from "../../catalog/domain/skill-spec.ts";
import type { WorkerRegistration } from "../../runs/domain/worker-session.ts";
import type { EventBatch } from "../../runs/usecases/append-events.ts";
import { readSkill } from "../../catalog/usecases/discover-skills.ts";
import type { Completion } from "../../runs/usecases/end-execution.ts";

export const registration = (request: worker.RegisterRequest): WorkerRegistration => ({
  workerHost: storable(request.workerId),
  instanceUid: storable(request.instanceUid),
  version: request.version,
  backend: request.backend,
  slots: request.slots,
  labels: storableJson(request.labels),
  harnesses: request.harnesses.map(({ type, version }) => ({ type, version })),
  models: request.models,
  images: request.images,
  arch: request.arch ? storable(request.arch) : undefined,
  sandbox: request.sandbox,
  sandboxFeatures: request.sandboxFeatures,
  skills: reportedSkills(request.skills),
});

/**
 * Leaves out files that are too large, files outside of skill folders, and those beyond the maximum number of files.
 */
const reportedSkills = (skills: readonly worker.ReportedSkill[]): RepositorySkill[] =>
  skills
    .filter(
      ({ owner, repo, path, content }) =>
        readRepository(`${owner}/${repo}`) &&
        isSkillFile(path) &&
        Buffer.byteLength(content) <= SKILL_LIMITS.fileBytesMax,
    )
    .slice(0, SKILL_LIMITS.filesMax)
    .map(({ owner, repo, path, content }) => readSkill({ owner, repo }, path, Buffer.from(content)));

/** Converts a batch. Errors: batch_too_large (too_large), event_kind_unknown (invalid_argument). */
export function eventBatch(batch: worker.EventBatch): EventBatch {
  if (batch.events.length > EVENT_BATCH_MAX) throw tooLarge();
  let bytes = 0;
  const events = batch.events.map(({ clientSeq, at, kind, payload = {} }) => {
    const size = Buffer.byteLength(JSON.stringify(payload));
    bytes += size;
    if (!isWorkerEventKind(kind))
      throw invalidArgument("event_kind_unknown", `Workers cannot report events of the kind "${kind}".`, { kind });
    const event = { clientSeq: Number(clientSeq), at: at ? timestampDate(at) : new Date(0), kind };
    return size > EVENT_BYTES_MAX
      ? { ...event, payload: { size_bytes: size }, isOversized: true }
      : { ...event, payload: storableJson(payload) };
  });
  if (bytes > EVENT_BATCH_BYTES_MAX && batch.events.length > 1) throw tooLarge();
  return { ...leaseRef(batch), events };
}

const tooLarge = (): DomainError =>
  new DomainError({
    kind: "too_large",
    reason: "batch_too_large",
    message: `A batch must have at most ${EVENT_BATCH_MAX} events and ${EVENT_BATCH_BYTES_MAX} bytes. Split it.`,
  });

const OUTCOMES: readonly string[] = ["DONE", "FAILED", "BLOCKED", "WAITING", "CANCELLED", "ERROR"];

/** Converts a completion. Errors: outcome_unknown (invalid_argument). */
export function completion(message: worker.Completion): Completion {
  const { outcome, error, waitFor } = message;
  if (!OUTCOMES.includes(outcome))
    throw invalidArgument("outcome_unknown", `outcome must be one of ${OUTCOMES.join(", ")} (got "${outcome}").`, {
      outcome,
    });
  return {
    ...leaseRef(message),
    outcome: outcome as Outcome,
    lastClientSeq: Number(message.lastClientSeq),
    error: error
      ? {
          code: error.code,
          message: storable(error.message),
          retryable: error.retryable,
          reason: storable(error.reason),
        }
      : undefined,
    snapshotKey: message.snapshotKey || undefined,
    waitFor: waitFor
      ? { policy: waitFor.policy === "any" ? ("any" as const) : ("all" as const), runUids: waitFor.runUids }
      : undefined,
    isRetained: message.retained || undefined,
    parkedMs: message.parkedMs > 0 ? message.parkedMs : undefined,
    isWorkspaceUnchanged: message.workspaceUnchanged || undefined,
    message: message.message ? storable(message.message) : undefined,
  };
}

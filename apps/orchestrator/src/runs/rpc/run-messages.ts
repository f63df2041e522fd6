import { optionalTimestamp } from "@millwright/rpc";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { artifactItemData } from "../domain/run-artifact.ts";
import type { Artifact } from "../domain/run-artifact.ts";
import type { RunEvent } from "../domain/run-events.ts";
import { isRunTypeCancellable, type Run, type RunStatus } from "../domain/run.ts";
import type { TeamEvent } from "../domain/team-event.ts";
import { requestUsage } from "../../catalog/domain/usage.ts";
import type { RunView } from "../usecases/describe-runs.ts";
import type { HarnessUsageReport } from "../usecases/get-harness-usage.ts";

/** Converts a run to its public record. The gateway adds profiles and links. */
export function runMessage({ run, artifacts, usage }: RunView): orchestrator.Run {
  const status = run.status;
  return create(orchestrator.RunSchema, {
    uid: run.uid,
    rootRunUid: run.rootRunUid,
    title: run.title,
    state: run.state,
    prompt: run.submittedPrompt ?? run.prompt,
    createdAt: timestampFromDate(run.createdAt),
    updatedAt: timestampFromDate(run.updatedAt),
    runTimeMs: BigInt(run.runTimeMs),
    source: run.source,
    executionLocation: run.executionLocation,
    creatorUid: run.creatorUid,
    executorUid: run.executorUid,
    ownerType: run.owner.type,
    ownerUid: run.owner.uid,
    agentConfig: run.agentConfig,
    metadata: { ...run.metadata },
    conversationUid: run.conversationUid,
    isSandboxRunning: run.isSandboxRunning,
    isRunTypeCancellable: isRunTypeCancellable(run),
    debugAgentAvailable: run.debugWindow !== undefined,
    artifacts: artifacts.map(artifactMessage),
    mode: run.mode,
    promptTruncated: run.isPromptTruncated ?? false,
    statusMessage: status ? statusMessage(status, run.debugWindow) : undefined,
    ...omitUndefined({
      parentRunUid: run.parentRunUid,
      retryOfRunUid: run.retryOfRunUid,
      submittedPrompt: run.submittedPrompt,
      startedAt: optionalTimestamp(run.startedAt),
      finishedAt: optionalTimestamp(run.finishedAt),
      agentSkill: run.agentSkill,
      factoryUid: run.factoryUid,
      schedule: run.schedule && scheduleMessage(run.schedule),
      sessionUid: run.sessionUid,
      triggerUrl: run.triggerUrl,
      requestUsage: requestUsage(usage),
      agentName: run.agentName,
      causeKey: run.causeKey,
    }),
  });
}

const statusMessage = (status: RunStatus, debugWindow: Run["debugWindow"]): orchestrator.StatusMessage =>
  create(orchestrator.StatusMessageSchema, {
    ...status,
    sessionDebugUntil: optionalTimestamp(debugWindow?.until),
    debugAgentActive: debugWindow?.isActive,
  });

export const artifactMessage = (artifact: Artifact): orchestrator.Artifact =>
  create(orchestrator.ArtifactSchema, {
    uid: artifact.uid,
    artifactType: artifact.type,
    createdAt: timestampFromDate(artifact.createdAt),
    data: artifactItemData(artifact) as JsonObject,
    runUid: artifact.runUid,
    public: artifact.isPublic,
  });

/** Converts a team event as it is stored, without filtering its fields. */
export const teamEventMessage = ({ sequence, occurredAt, ...event }: TeamEvent): orchestrator.TeamEvent =>
  create(orchestrator.TeamEventSchema, {
    ...event,
    sequence: BigInt(sequence),
    occurredAt: timestampFromDate(occurredAt),
  });

export const runEventMessage = (event: RunEvent): orchestrator.RunEvent =>
  create(orchestrator.RunEventSchema, {
    seq: BigInt(event.seq),
    uid: event.uid,
    kind: event.kind,
    occurredAt: timestampFromDate(event.occurredAt),
    payload: event.payload,
    ...omitUndefined({
      executionId: event.executionId === undefined ? undefined : BigInt(event.executionId),
      attempt: event.attempt,
    }),
  });

export const harnessUsageMessage = ({
  captureSequence,
  capturedAt,
  executionId,
  toolCalls,
  ageSeconds,
  reportedTokens,
  meteredTokens,
  unmeasuredCalls,
  ...usage
}: NonNullable<HarnessUsageReport["usage"]>): orchestrator.HarnessUsage =>
  create(orchestrator.HarnessUsageSchema, {
    ...usage,
    captureSequence: BigInt(captureSequence),
    capturedAt: timestampFromDate(capturedAt),
    executionId: BigInt(executionId),
    ageSeconds: BigInt(ageSeconds),
    reportedTokens: reportedTokens === undefined ? undefined : BigInt(reportedTokens),
    meteredTokens: meteredTokens === undefined ? undefined : BigInt(meteredTokens),
    unmeasuredCalls: BigInt(unmeasuredCalls),
    toolCalls: Object.fromEntries(Object.entries(toolCalls).map(([name, count]) => [name, BigInt(count)])),
  });

const scheduleMessage = (schedule: NonNullable<Run["schedule"]>): orchestrator.ScheduleRef =>
  create(orchestrator.ScheduleRefSchema, {
    scheduleId: textOf(schedule["schedule_id"]),
    scheduleName: textOf(schedule["schedule_name"]),
    cronSchedule: textOf(schedule["cron_schedule"]),
  });

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

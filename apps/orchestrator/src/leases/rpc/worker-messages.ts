import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { worker } from "@millwright/contracts";
import { STEP_LIMIT, type Assignment, type Input } from "../../runs/domain/assignment.ts";
import type { LinkedDirective } from "../../runs/domain/directive.ts";
import type { FrozenMcpServer } from "../../catalog/domain/mcp-servers.ts";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { Timings } from "../../runs/domain/timings.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { Dispatch } from "../usecases/dispatch-offers.ts";

export const leaseRef = ({ executionId, attempt }: { executionId: bigint; attempt: number }): LeaseRef => ({
  executionId: Number(executionId),
  attempt,
});

export const leaseMessage = ({ executionId, attempt }: LeaseRef) => ({ executionId: BigInt(executionId), attempt });

const inputMessage = ({ uid, text, mode, kind, attachments }: Input) =>
  create(worker.InputMessageSchema, { uid, text, mode, kind, attachments: attachments.map(attachmentRef) });

const attachmentRef = ({ uid, fileName, mimeType, downloadUrl }: LinkedDirective["files"][number]) => ({
  uid,
  fileName,
  mimeType,
  downloadUrl,
});

export function assignmentMessage(assignment: Assignment, timings: Timings, runTokenLimit: number): worker.Assignment {
  const { job, details } = assignment;
  const { frozen, run } = job;
  return create(worker.AssignmentSchema, {
    ...leaseMessage(assignment),
    runUid: run.runUid,
    rootRunUid: run.rootRunUid,
    conversationUid: run.conversationUid,
    runToken: assignment.runToken,
    leaseExpiresAt: timestampFromDate(assignment.leaseExpiresAt),
    executionSeq: assignment.executionSeq,
    title: job.title,
    inputs: assignment.inputs.map(inputMessage),
    modelId: frozen.model_id,
    provider: frozen.provider,
    harness: frozen.harness,
    reasoningLevel: frozen.reasoning_level ?? "",
    agentPrompt: frozen.agent_prompt,
    basePrompt: frozen.base_prompt,
    agentName: frozen.agent_name ?? "",
    skills: frozen.skills.map((skill) => ({ ...skill })),
    repositories: details.repositories.map((repository) => ({ ...repository })),
    setupCommands: [...frozen.setup_commands],
    env: { ...frozen.env },
    secrets: { ...details.secrets },
    mcpServers: Object.entries(frozen.mcp_servers ?? {}).map(([name, server]) => mcpServer(name, server)),
    dockerImage: frozen.docker_image,
    egress: frozen.allowed_hosts ? { allowedHosts: [...frozen.allowed_hosts] } : undefined,
    instanceShape: frozen.instance_shape
      ? { vcpus: frozen.instance_shape.vcpus, memoryGb: frozen.instance_shape.memory_gb }
      : undefined,
    mode: assignment.inputs.findLast(({ kind, mode }) => kind !== "children" && mode !== "")?.mode || job.mode,
    interactive: job.interactive,
    debugWindowMs: Math.round((frozen.failure_session_retention_minutes ?? 0) * timings.debugMinuteMs),
    idleTimeoutSeconds: frozen.idle_timeout_minutes * 60,
    setupTimeoutSeconds: seconds(timings.setupTimeoutMs),
    maxExecutionSeconds: seconds(timings.executionTimeoutMs),
    stepLimit: frozen.step_limit ?? STEP_LIMIT,
    tokenLimit: BigInt(lowestLimit(runTokenLimit, frozen.token_limit)),
    costLimited: frozen.cost_limit_micros !== undefined || frozen.cost_limited_above === true || job.isBudgeted,
    snapshotUrl: assignment.snapshotUrl,
    snapshotKey: assignment.snapshotKey,
    snapshotRequired: assignment.snapshotKey !== "" && assignment.snapshotKey === frozen.workspace?.snapshot_key,
    judge: frozen.judge
      ? { scorerUid: frozen.judge.scorer_uid, classifications: [...frozen.judge.classifications] }
      : undefined,
    factoryUid: run.factoryUid ?? "",
    spawnableAgents: [...frozen.spawnable_agents],
    metadata: { ...job.metadata },
    restarted: assignment.isRestarted,
    directives: assignment.directives.map((interrupt) => directiveMessage({ ...interrupt, files: [] })),
    earlierAttachments: assignment.earlierAttachments.map(attachmentRef),
    traceparent: job.traceparent,
    providerCredentials: details.providerCredentials,
  });
}

export const dispatchMessage = ({
  job,
  offerToken,
  ...lease
}: Dispatch): MessageInitShape<typeof worker.DispatchedExecutionSchema> => ({
  ...{
    ...leaseMessage(lease),
    offerToken,
    runUid: job.run.runUid,
    title: job.title,
    harness: job.frozen.harness,
    dockerImage: job.frozen.docker_image,
  },
  instanceShape: job.frozen.instance_shape
    ? { vcpus: job.frozen.instance_shape.vcpus, memoryGb: job.frozen.instance_shape.memory_gb }
    : undefined,
});

const mcpServer = (
  name: string,
  { command, args = [], env = {}, url, headers = {}, managed_id: managedId }: FrozenMcpServer,
) =>
  create(worker.McpServerSchema, {
    name,
    command: command ?? "",
    args: [...args],
    env: { ...env },
    url: url ?? "",
    headers: { ...headers },
    managedId: managedId ?? "",
  });

/** Returns the lower of the two limits. 0 means no limit. */
function lowestLimit(platform: number, own = 0): number {
  const limits = [platform, own].filter((limit) => limit > 0);
  return limits.length === 0 ? 0 : Math.min(...limits);
}

const seconds = (ms: number): number => Math.max(1, Math.round(ms / 1000));

export function directiveMessage(directive: LinkedDirective): worker.Directive {
  return create(worker.DirectiveSchema, {
    seq: BigInt(directive.seq),
    previousSeq: BigInt(directive.previousSeq),
    ...leaseMessage(directive),
    directive: directiveCase(directive),
  });
}

function directiveCase({ kind, payload, files }: LinkedDirective): worker.Directive["directive"] {
  const text = (key: string): string => (typeof payload[key] === "string" ? payload[key] : "");
  switch (kind) {
    case "cancel":
      return { case: "cancel", value: create(worker.CancelSchema, { reason: text("reason") }) };
    case "interrupt":
      return { case: "interrupt", value: create(worker.InterruptSchema, { turnId: text("turn_id") }) };
    case "followup": {
      const message = create(worker.InputMessageSchema, {
        uid: text("message_uid"),
        text: text("text"),
        mode: text("mode"),
        kind: "followup",
        attachments: files.map(attachmentRef),
      });
      return { case: "followup", value: create(worker.FollowupSchema, { message }) };
    }
    case "end_idle":
      return { case: "endIdle", value: create(worker.EndIdleSchema) };
    case "drain":
      return { case: "drain", value: create(worker.DrainSchema) };
    default:
      return kind satisfies never;
  }
}

export const historyEvent = (event: RunEvent): worker.HistoryEvent =>
  create(worker.HistoryEventSchema, {
    seq: BigInt(event.seq),
    kind: event.kind,
    payload: event.payload,
    executionId: BigInt(event.executionId ?? 0),
    runUid: event.runUid,
    attempt: event.attempt ?? 0,
  });

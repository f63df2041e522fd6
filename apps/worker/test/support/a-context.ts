import { copyFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { systemClock, type Clock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { LOOPBACK, outboundRule, type OutboundRule } from "@millwright/outbound";
import { memoryLog } from "@millwright/testing";
import type { Logger } from "@millwright/telemetry";
import type {
  CallUsage,
  NewArtifact,
  NewPullRequest,
  PlannedCall,
  RestResponse,
} from "../../src/context/platform-client.ts";
import type { OutboundGate } from "../../src/egress/outbound-gate.ts";
import type { ExecutionContext, ExecutionPhase, ExecutionResult } from "../../src/context/execution-context.ts";
import type { SandboxHandle } from "../../src/sandbox/sandbox-handle.ts";
import { ExecutionCancelled, LeaseLost } from "../../src/context/execution-errors.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import type { SandboxHost } from "../../src/sandbox/spec.ts";
import type { ParkedWorkspace } from "../../src/state/parked-workspaces.ts";
import { Masker } from "../../src/spool/masker.ts";
import { literalSecrets } from "../../src/mcp/server-settings.ts";
import { savesWorkspace } from "../../src/executions/execution-outcome.ts";
import { DirectiveQueue } from "../../src/executions/directive-queue.ts";

/** An event. By default, it belongs to this run and its first execution. */
export type Event = { kind: string; payload: JsonObject; runUid?: string; executionId?: bigint };
export type RestCall = {
  method: string;
  path: string;
  body: JsonObject | undefined;
  headers: Readonly<Record<string, string>>;
};

export type TestContext = {
  readonly ctx: ExecutionContext;
  /** The events that the execution emitted, oldest first. */
  readonly events: Event[];
  /** Returns the run's history including these events, which the next execution reads. */
  readonly history: () => Event[];
  readonly artifacts: NewArtifact[];
  readonly pullRequests: NewPullRequest[];
  readonly usage: CallUsage[];
  /** The outcomes of model calls. */
  readonly modelCalls: string[];
  /** The files of the saved workspaces. Their keys are `snapshot-1`, … */
  readonly snapshots: string[];
  /** The transcripts of third-party agent programs. */
  readonly transcripts: string[];
  readonly restCalls: RestCall[];
  readonly phases: ExecutionPhase[];
  /** The results of failed setups that were reported to the platform. */
  readonly retained: ExecutionResult[];
  /** The workspaces that may be retained for the next execution. */
  readonly parked: ParkedWorkspace[];
  /** The published text deltas of models. */
  readonly textDeltas: { stepId: string; delta: string }[];
  endDebugWindow(why: string): void;
  /** The sandboxes of the agent and of pushes, but not those of platform scripts. */
  readonly sandboxes: SandboxHandle[];
  readonly ackedDirectiveSeq: () => bigint;
  followup(message: MessageInitShape<typeof worker.InputMessageSchema>): void;
  interrupt(): void;
  endIdle(): void;
  cancel(cause?: ExecutionCancelled["stopCause"]): void;
  /** Ends the time in which a stopped execution may save its workspace. */
  endSaving(): void;
  /** Makes the worker lose the lease: events that the execution emits afterwards are dropped. */
  lose(): void;
};

export type ContextOptions = {
  readonly dir: string;
  readonly assignment?: Omit<MessageInitShape<typeof worker.AssignmentSchema>, "$typeName">;
  /** The text of the only input. Unused if `assignment.inputs` is set. */
  readonly prompt?: string;
  readonly kind?: "bwrap" | "none";
  /** Whether the operator configured the kind; true by default. */
  readonly isChosen?: boolean;
  readonly history?: readonly Event[];
  /** The files behind signed URLs. */
  readonly files?: Record<string, Uint8Array>;
  readonly rest?: (call: RestCall) => { status: number; body: unknown };
  readonly clock?: Clock;
  /** Whether the response to the first usage report states that a budget covers the run. */
  readonly isLimitedByReport?: boolean;
  /** Returns the platform's response to a call under a cost limit. */
  readonly reserveCost?: (call: PlannedCall, reportedCount: number) => { outcome: string; message: string };
  /** The workspace that an earlier execution left, and its path. */
  readonly parked?: ParkedWorkspace & { readonly from: string };
  /** Called before a snapshot is stored; a rejection is returned as the platform's. */
  readonly onPutSnapshot?: () => void | Promise<void>;
  /** Absent: a gate that is always open. */
  readonly gate?: OutboundGate;
  /** The rule for addresses that teams configure. Absent: loopback is allowed, where the servers of the tests are. */
  readonly outbound?: OutboundRule;
  /** The machine's sandbox capabilities. Absent: only the kind is known. */
  readonly host?: SandboxHost;
  /** Resolves when the platform has stored every event. */
  readonly flushed?: () => Promise<void>;
};

const signedUrl = (name: string): string => `memory:${name}`;
/** Returns a URL of the file that `putSnapshot` of a context in `dir` writes, for the next context to download. */
export const snapshotUrl = (dir: string): string => signedUrl(join(dir, "saved-snapshot"));

/**
 * Returns the context of an execution in memory: a platform that records its calls, and directives that the caller
 * controls.
 */
export function aContext(options: ContextOptions): TestContext {
  const { dir, history = [] } = options;
  const input = {
    uid: newUid(),
    text: options.prompt ?? "",
    kind: history.length === 0 ? "prompt" : "followup",
    mode: "normal",
  };
  const assignment = create(worker.AssignmentSchema, {
    ...{
      executionId: history.length === 0 ? 1n : 2n,
      attempt: 1,
      runUid: newUid(),
      executionSeq: 1,
      provider: "scripted",
      modelId: "scripted",
      mode: "normal",
      inputs: [input],
      stepLimit: 200,
    },
    ...options.assignment,
  });
  const masker = new Masker([
    ...Object.values(assignment.secrets),
    assignment.providerCredentials?.apiKey ?? "",
    ...literalSecrets(assignment.mcpServers),
  ]);
  const log = memoryLog();
  const directives = new DirectiveQueue({
    onCancel: () => stop.abort(cancelled()),
    onError: (error) => log.error({ error }, "directive handler failed"),
  });
  const stop = new AbortController();
  const recorded = {
    events: [] as Event[],
    artifacts: [] as NewArtifact[],
    pullRequests: [] as NewPullRequest[],
    usage: [] as CallUsage[],
    modelCalls: [] as string[],
    restCalls: [] as RestCall[],
    snapshots: [] as string[],
    transcripts: [] as string[],
  };
  const [phases, sandboxes]: [ExecutionPhase[], SandboxHandle[]] = [[], []];
  const retained: ExecutionResult[] = [];
  const textDeltas: { stepId: string; delta: string }[] = [];
  const parked: ParkedWorkspace[] = [];
  const leave = new AbortController();
  let directiveSeq = BigInt(assignment.directives.length);
  let isLost = false;
  const saving = new AbortController();
  const direct = (directive: MessageInitShape<typeof worker.DirectiveSchema>["directive"]) =>
    directives.deliver(
      create(worker.DirectiveSchema, {
        seq: (directiveSeq += 1n),
        executionId: 1n,
        attempt: 1,
        directive,
      }),
    );

  for (const directive of assignment.directives) directives.deliver(directive);
  const ownSandbox = (sandbox: SandboxHandle): void => void (sandbox instanceof Sandbox && sandboxes.push(sandbox));
  const ctx: ExecutionContext = {
    assignment,
    dir,
    cacheDir: join(dir, "..", "cache"),
    emit: (kind, payload) =>
      void (
        isLost ||
        recorded.events.push({ kind, payload: JSON.parse(JSON.stringify(masker.payload(payload))) as JsonObject })
      ),
    mask: (text) => masker.text(text),
    publishTextDelta: (stepId, delta) => void textDeltas.push({ stepId, delta }),
    flushed: options.flushed ?? (() => Promise.resolve()),
    modelCalled: (provider, outcome) => void recorded.modelCalls.push(`${provider} ${outcome}`),
    gate: options.gate ?? { assertOpen: () => {}, whenOpen: () => Promise.resolve() },
    directives,
    signal: stop.signal,
    phase: (phase) => void phases.push(phase),
    park: (workspace) => void parked.push(workspace),
    takeParked: () =>
      options.parked
        ? rename(options.parked.from, join(dir, "workspace")).then(() => options.parked)
        : Promise.resolve(undefined),
    retain: (result) => {
      retained.push(result);
      return Promise.resolve(assignment.debugWindowMs > 0 ? leave.signal : undefined);
    },
    ownSandbox,
    lastSave: () =>
      stop.signal.aborted && savesWorkspace(stop.signal.reason as Error)
        ? { signal: saving.signal, platform: ctx.platform, ownSandbox }
        : undefined,
    sandbox: {
      kind: options.kind ?? "bwrap",
      isChosen: options.isChosen ?? true,
      host: options.host,
    },
    outbound: options.outbound ?? outboundRule(LOOPBACK),
    publicUrl: "http://127.0.0.1:8080",
    log: quietLogger(log),
    clock: options.clock ?? systemClock,
    platform: {
      createArtifact: (artifact) => (
        recorded.artifacts.push(artifact),
        Promise.resolve({ artifactUid: `artifact-${recorded.artifacts.length}` })
      ),
      openPullRequest: (pullRequest) => {
        recorded.pullRequests.push(pullRequest);
        return Promise.resolve({
          url: "http://127.0.0.1:8080/pull/1",
          number: 1,
          artifactUid: "artifact-pr",
          adopted: recorded.pullRequests.length > 1,
        });
      },
      isCostLimited: () => assignment.costLimited || (options.isLimitedByReport === true && recorded.usage.length > 0),
      reserveCost: async (call) =>
        options.reserveCost?.(call, recorded.usage.length) ?? { outcome: "granted", message: "" },
      reportUsage: (usage) => (recorded.usage.push(usage), Promise.resolve()),
      readHistory: () =>
        Promise.resolve(
          history.map(({ runUid = assignment.runUid, executionId = 1n, ...event }, index) => ({
            seq: BigInt(index + 1),
            runUid,
            executionId,
            ...event,
          })),
        ),
      putSnapshot: async (file) => {
        await options.onPutSnapshot?.();
        await copyFile(file, join(dir, "saved-snapshot"));
        return { snapshotKey: `snapshot-${recorded.snapshots.push(file)}` };
      },
      putTranscript: (content) => (recorded.transcripts.push(Buffer.from(content).toString("utf8")), Promise.resolve()),
      download: async (url, file) =>
        writeFile(file, options.files?.[url] ?? (await readFile(url.replace("memory:", "")).catch(refuseTransfer))),
      rest: (method, path, body, headers = {}): Promise<RestResponse> => {
        const call = { method, path, body, headers };
        recorded.restCalls.push(call);
        return Promise.resolve({
          headers: new Headers(),
          ...(options.rest?.(call) ?? { status: 404, body: { title: "Not found" } }),
        });
      },
    },
  };
  return {
    ...{ ctx, ...recorded, phases, sandboxes, retained, parked, textDeltas },
    endDebugWindow: (why) => leave.abort(new Error(why)),
    history: () => [...history, ...recorded.events],
    ackedDirectiveSeq: () => directives.ackedSeq,
    followup: (message) =>
      direct({
        case: "followup",
        value: {
          message: create(worker.InputMessageSchema, { uid: newUid(), kind: "followup", mode: "normal", ...message }),
        },
      }),
    interrupt: () => direct({ case: "interrupt", value: { turnId: "" } }),
    endIdle: () => direct({ case: "endIdle", value: {} }),
    cancel: (cause) => stop.abort(cancelled(cause)),
    endSaving: () => saving.abort(new Error("The time to save is over.")),
    lose: () => ((isLost = true), stop.abort(new LeaseLost()), saving.abort(new LeaseLost())),
  };
}

const refuseTransfer = (): never => {
  throw new DomainError({
    kind: "internal",
    reason: "transfer_refused",
    message: "A transfer was refused with status 404.",
  });
};
const quietLogger = (log: Omit<Logger, "child">): Logger => ({ ...log, child: () => quietLogger(log) });
const cancelled = (cause: ExecutionCancelled["stopCause"] = "cancelled") =>
  new ExecutionCancelled(cause, "The run was cancelled.");

/** Creates a directory for one context, below a directory of the test. */
export async function executionDir(root: string, name: string): Promise<string> {
  await mkdir(join(root, name), { recursive: true, mode: 0o700 });
  return join(root, name);
}

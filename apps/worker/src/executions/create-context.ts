import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import type { Clock } from "@millwright/clock";
import type { OutboundRule } from "@millwright/outbound";
import type { Logger } from "@millwright/telemetry";
import { outboundGateOf } from "../egress/outbound-gate.ts";
import type { LeaseClock } from "../leases/lease-clock.ts";
import type { ModelCallCounts } from "../model/model-call-counts.ts";
import type { WorkerClient } from "../protocol/client.ts";
import type { Timings } from "../protocol/timings.ts";
import type { EventStream } from "../spool/event-stream.ts";
import type { Masker } from "../spool/masker.ts";
import type { InstanceDirectory } from "../state/instance-directory.ts";
import type { ParkedWorkspace, ParkedWorkspaces } from "../state/parked-workspaces.ts";
import type { Timers } from "../time/timers.ts";
import type { DirectiveQueue } from "./directive-queue.ts";
import type { ExecutionContext, ExecutionPhase } from "../context/execution-context.ts";
import type { PlatformClient } from "../context/platform-client.ts";
import type { LiveText } from "./live-text.ts";
import { maskedPlatform } from "./masked-platform.ts";
import { createPlatformClient } from "./create-platform-client.ts";
import type { Sandboxes } from "./sandboxes.ts";

export type ContextDeps = {
  readonly client: WorkerClient;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly timings: () => Timings;
  readonly modelCalls: Pick<ModelCallCounts, "add">;
  readonly directory: InstanceDirectory;
  readonly sandbox: ExecutionContext["sandbox"];
  readonly url: string;
  readonly outbound: OutboundRule;
  readonly gitCaFile?: string | undefined;
  readonly publicUrl: () => string;
  readonly parked: ParkedWorkspaces;
};

/** The state of one attempt that its context accesses. */
export type AttemptState = {
  readonly assignment: worker.Assignment;
  readonly dir: string;
  readonly lease: LeaseClock;
  readonly masker: Masker;
  readonly events: EventStream;
  readonly directives: DirectiveQueue;
  readonly live: LiveText;
  readonly sandboxes: Sandboxes;
  readonly signal: AbortSignal;
  /** Whether the workspace may be saved after `signal` was aborted, and until when, in which sandboxes. */
  readonly lastSave: { isPermitted(): boolean; readonly signal: AbortSignal; readonly sandboxes: Sandboxes };
  readonly log: Logger;
  readonly runToken: () => string;
  readonly onPhase: (phase: ExecutionPhase) => void;
  readonly onSaved: (workspace: ParkedWorkspace) => void;
  readonly retain: ExecutionContext["retain"];
};

/** Returns the context of one attempt. */
export function createContext(deps: ContextDeps, attempt: AttemptState): ExecutionContext {
  const { client, clock, timers, timings, url, publicUrl, directory, sandbox, outbound, parked, modelCalls } = deps;
  const { assignment, dir, events, masker, directives, live, sandboxes, signal, lastSave, log, runToken } = attempt;
  const { executionId, attempt: number, runUid, snapshotKey, costLimited } = assignment;
  const gate = outboundGateOf(attempt.lease, signal);
  const platformUntil = (over: AbortSignal): PlatformClient =>
    maskedPlatform(
      createPlatformClient({
        ...{ client, timers, timings, url, runToken, costLimited },
        gate: outboundGateOf(attempt.lease, over),
        signal: over,
        lease: { executionId, attempt: number },
        modelAccess: accessOf(assignment),
      }),
      masker,
    );
  return {
    ...{ assignment, dir, gate, directives, signal, sandbox, outbound, log, clock },
    cacheDir: directory.cacheDir,
    gitCaFile: deps.gitCaFile,
    emit: (kind, payload) => events.emit(kind, payload),
    mask: (text) => masker.text(text),
    flushed: () => events.flushed(),
    publishTextDelta: (stepId, delta) => live.publish(stepId, delta),
    modelCalled: (provider, outcome) => modelCalls.add(provider, outcome),
    platform: platformUntil(signal),
    phase: attempt.onPhase,
    park: attempt.onSaved,
    takeParked: () => parked.take(runUid, snapshotKey, join(dir, "workspace")),
    retain: attempt.retain,
    lastSave: () =>
      lastSave.isPermitted()
        ? {
            signal: lastSave.signal,
            platform: platformUntil(lastSave.signal),
            ownSandbox: (started) => lastSave.sandboxes.own(started),
          }
        : undefined,
    ownSandbox: (started) => sandboxes.own(started),
    publicUrl: publicUrl() || url,
  };
}

/** Returns which kind of provider credential an execution was given. */
function accessOf({ providerCredentials: credentials }: worker.Assignment): string {
  if (!credentials) return "";
  return credentials.operatorSet ? "operator" : credentials.baseUrl === "" ? "team" : "team_endpoint";
}

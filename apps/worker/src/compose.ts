import type { Clock } from "@millwright/clock";
import type { worker } from "@millwright/contracts";
import { bestEffort } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { outboundRule } from "@millwright/outbound";
import { outsideScopes, type Logger, type Tracer } from "@millwright/telemetry";
import type { WorkerConfig } from "./config.ts";
import type { RunExecution } from "./executions/execution-context.ts";
import { Executions } from "./executions/executions.ts";
import { HeldExecution } from "./executions/held-execution.ts";
import { LeaseKeeper } from "./leases/lease-keeper.ts";
import { LeaseLoop } from "./leases/lease-loop.ts";
import { ModelCallCounts } from "./model/model-call-counts.ts";
import { registrarClient, workerClient } from "./protocol/client.ts";
import { Coalescer } from "./protocol/coalescer.ts";
import { leaseOfOffer, takeOffered, type LeaseRef } from "./protocol/offer.ts";
import { reportedSkills } from "./protocol/reported-skills.ts";
import { Session } from "./protocol/session.ts";
import { subscribe } from "./protocol/subscription.ts";
import { workerVersion as version } from "./protocol/worker-version.ts";
import type { RunningWorker, WorkerEnd } from "./running-worker.ts";
import type { SandboxHost } from "./sandbox/spec.ts";
import { InstanceDirectory } from "./state/instance-directory.ts";
import { ParkedWorkspaces } from "./state/parked-workspaces.ts";
import { Room } from "./state/room.ts";
import type { Timers } from "./time.ts";

export type WorkerOptions = {
  readonly config: WorkerConfig;
  readonly sandbox: { readonly kind: "bwrap" | "none"; readonly features: readonly string[]; readonly host?: SandboxHost };
  readonly runExecution: RunExecution;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** Records what executions do; absent: nothing. */
  readonly tracer?: Tracer;
};

/** At most this many executions' batches go into one call. */
const COALESCED_MAX = 8;

/** Builds a worker, and starts it. It registers in the background, for as long as that takes. Errors: those of its state directory. */
export async function startWorker({ config, sandbox, runExecution, clock, timers, log, tracer }: WorkerOptions): Promise<RunningWorker> {
  const instanceUid = newUid();
  const directory = await InstanceDirectory.open(config.dir, instanceUid.slice(-8), log);
  const alive = new AbortController(); // until nothing runs any more
  const taking = new AbortController(); // until the drain begins
  let finish: (end: WorkerEnd) => void = () => {};
  const ended = new Promise<WorkerEnd>((resolve) => (finish = resolve));
  const offered = config.offer === undefined ? undefined : leaseOfOffer(config.offer);
  let only: HeldExecution | undefined; // in one-run mode

  const session = new Session({
    registrar: registrarClient(config.url),
    workerKey: config.offer ?? config.workerKey,
    request: { ...registration(config, sandbox, instanceUid), skills: await reportedSkills(config.skillCheckouts) },
    timers,
    log,
    onRefused: (refusal) => end({ refusal }),
  });
  const { timings } = session;
  const client = workerClient(config.url, session);
  const callOptions = () => ({ timeoutMs: timings().callTimeoutMs, signal: alive.signal });
  const appends = new Coalescer<worker.EventBatch, worker.AppendResult>({
    timers,
    itemsMax: COALESCED_MAX,
    sendAll: (batches) => outsideScopes(async () => inOrder(batches, (await client.appendEvents({ batches }, callOptions())).results)),
  });
  const completions = new Coalescer<worker.Completion, worker.CompletionResult>({
    timers,
    itemsMax: COALESCED_MAX,
    sendAll: (items) => outsideScopes(async () => inOrder(items, (await client.complete({ completions: items }, callOptions())).results)),
  });
  const modelCalls = new ModelCallCounts();
  const executions: Executions = new Executions({
    slots: offered ? 1 : config.slots,
    log,
    onDrain: () => void drain(),
    hold: (assignment, acceptSent) => (only = new HeldExecution(held, assignment, acceptSent)),
  });
  const room = new Room(directory, config.repositoryCacheBytes, clock, log);
  const parked = new ParkedWorkspaces({ dir: directory.parkedDir, bytesMax: offered ? 0 : config.parkedBytes, timers, log });
  const isTaking = (): boolean => !taking.signal.aborted && room.isThere;
  const keeper = new LeaseKeeper(
    {
      client,
      clock,
      timers,
      timings,
      log,
      leases: () => executions.all(),
      state: () => ({ state: isTaking() ? "READY" : "DRAINING", freeSlots: isTaking() ? executions.freeSlots() : 0 }),
      onDirective: (directive) => executions.route(directive),
      modelCalls,
    },
    alive.signal,
  );
  const loop = new LeaseLoop({
    client,
    clock,
    timers,
    timings,
    log,
    freeSlots: () => executions.freeSlots(),
    slotFreed: () => executions.slotFreed(),
    hasRoom: async () => (await room.hasRoom()) || (await parked.clear(), await room.hasRoom()),
    async take(leases, sent, options) {
      const answer = await client.accept({ leases: [...leases] }, options);
      for (const assignment of answer.assignments) executions.begin(assignment, sent);
      return answer.lost;
    },
  });
  const held = {
    ...{ client, appends, completions, clock, timers, timings, log, tracer, modelCalls, directory, parked, runExecution },
    sandbox: { kind: sandbox.kind, isChosen: config.sandbox !== "auto", ...(sandbox.host ? { host: sandbox.host } : {}) },
    outbound: outboundRule(config.allowedInternalHosts ?? []),
    url: config.url,
    publicUrl: () => session.publicUrl,
    beatNow: () => outsideScopes(() => keeper.beatNow()),
  };

  function end(how: { refusal?: Error }): void {
    executions.abandonAll("The worker has ended.");
    alive.abort(new Error("The worker has ended."));
    taking.abort(alive.signal.reason);
    session.close();
    finish(offered ? { ...how, oneRun: only === undefined ? "not_begun" : only.isReported ? "reported" : "left" } : how);
  }

  /** One-run mode: the offered execution, and nothing else. */
  async function runOffered(lease: LeaseRef): Promise<void> {
    try {
      const { assignment, sent } = await takeOffered({ client, clock, timers, timings }, lease, taking.signal);
      executions.begin(assignment, sent);
      await executions.idle();
    } catch (error) {
      if (taking.signal.aborted) return;
      return end({ refusal: error as Error });
    }
    void drain();
  }

  let draining: Promise<void> | undefined;
  function drain(): Promise<void> {
    draining ??= (async () => {
      log.info({ operation: "drain", count: executions.all().length }, "draining");
      taking.abort(new Error("The worker drains."));
      executions.endDebugWindows("worker_stopping");
      void keeper.beatNow();
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
      const limits = [
        timers.after(config.drainMs, () => executions.stopAll("The worker is stopping.")),
        timers.after(config.drainMs + timings().ladderStepMs * 5, giveUp), // the ladder has been climbed, and the last reports had their time
      ];
      await Promise.race([taken.then(() => executions.idle()), givenUp, ended]);
      for (const cancel of limits) cancel();
      end({});
      await bestEffort("remove the state directory", log, () => directory.remove());
    })();
    return draining;
  }

  const taken = session.current(taking.signal).then(
    () => {
      keeper.start();
      void subscribe(
        { client, session, timers, log, onDirective: (directive) => executions.route(directive), onWorkAvailable: () => loop.ring() },
        alive.signal,
      );
      return offered ? runOffered(offered) : loop.run(taking.signal);
    },
    () => {}, // refused (told to onRefused), or drained before it was registered
  );
  return { drain, killNow: () => executions.abandonAll("The worker ends at once."), ended };
}

const registration = (config: WorkerConfig, sandbox: WorkerOptions["sandbox"], instanceUid: string) => ({
  workerId: config.workerId,
  instanceUid,
  version,
  backend: "direct",
  slots: config.offer === undefined ? config.slots : 1,
  harnesses: [{ type: "oz", version }, ...[...(sandbox.host?.harnesses ?? [])].map(([type, { version: own }]) => ({ type, version: own }))],
  sandbox: sandbox.kind,
  sandboxFeatures: [...sandbox.features],
  images: [...(sandbox.host?.rootfs?.keys() ?? [])],
});

/** Answers matched to what they answer, whatever order the platform chose; a missing one stays undefined. */
const inOrder = <O extends LeaseRef>(items: readonly LeaseRef[], answers: readonly O[]): (O | undefined)[] =>
  items.map((item) => answers.find((answer) => answer.executionId === item.executionId && answer.attempt === item.attempt));

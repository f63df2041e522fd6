import type { worker } from "@millwright/contracts";
import { bestEffort } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { outboundRule } from "@millwright/outbound";
import { outsideScopes } from "@millwright/telemetry";
import type { WorkerConfig } from "./config.ts";
import { Executions } from "./executions/executions.ts";
import { WORKER_STOPPING } from "./executions/execution-outcome.ts";
import { ActiveExecution } from "./executions/active-execution.ts";
import { StartFailures } from "./executions/start-failures.ts";
import { LeaseRenewer } from "./leases/lease-renewer.ts";
import { LeaseLoop } from "./leases/lease-loop.ts";
import { ModelCallCounts } from "./model/model-call-counts.ts";
import { registrarClient, workerClient } from "./protocol/client.ts";
import { Coalescer } from "./protocol/coalescer.ts";
import { leaseOfOffer, acceptOffered, type LeaseRef } from "./protocol/offer.ts";
import { reportedSkills } from "./protocol/reported-skills.ts";
import { Session } from "./protocol/session.ts";
import { subscribe } from "./protocol/subscription.ts";
import { workerVersion as version } from "./protocol/worker-version.ts";
import type { RunningWorker, WorkerEnd, WorkerOptions } from "./running-worker.ts";
import { InstanceDirectory } from "./state/instance-directory.ts";
import { ParkedWorkspaces } from "./state/parked-workspaces.ts";
import { DiskSpace } from "./state/disk-space.ts";
import { atMost } from "./time/timers.ts";

/** How long killed sandboxes may take to exit at the end of a drain. */
const LAST_SANDBOXES_MS = 5_000;
/** The maximum number of executions whose batches share one call. */
const COALESCED_MAX = 8;
/** How long each step of an immediate exit may take: first the end of the sandboxes, then the return of the leases. */
const STOP_STEP_MS = 2_000;

/**
 * Builds and starts a worker. It registers in the background, without a time limit. Throws the errors of its state
 * directory.
 */
export async function startWorker({
  config,
  sandbox,
  runExecution,
  clock,
  timers,
  log,
  tracer,
}: WorkerOptions): Promise<RunningWorker> {
  const instanceUid = newUid();
  const directory = await InstanceDirectory.open(config.dir, instanceUid.slice(-8), log);
  const alive = new AbortController(); // aborted when nothing runs any more
  const taking = new AbortController(); // aborted when the drain begins
  let finish: (end: WorkerEnd) => void = () => {};
  const ended = new Promise<WorkerEnd>((resolve) => (finish = resolve));
  const offered = config.offer === undefined ? undefined : leaseOfOffer(config.offer);
  let only: ActiveExecution | undefined; // set in one-run mode

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
    sendAll: (batches) =>
      outsideScopes(async () => inOrder(batches, (await client.appendEvents({ batches }, callOptions())).results)),
  });
  const completions = new Coalescer<worker.Completion, worker.CompletionResult>({
    timers,
    itemsMax: COALESCED_MAX,
    sendAll: (items) =>
      outsideScopes(async () => inOrder(items, (await client.complete({ completions: items }, callOptions())).results)),
  });
  const modelCalls = new ModelCallCounts();
  const executions: Executions = new Executions({
    slots: offered ? 1 : config.slots,
    log,
    onDrain: () => void drain(),
    fetchDirectives: () => outsideScopes(() => renewer.heartbeatSoon()),
    createExecution: (assignment, acceptSent) => (only = new ActiveExecution(executionDeps, assignment, acceptSent)),
  });
  const diskSpace = new DiskSpace(directory, config.repositoryCacheBytes, clock, log);
  const parked = new ParkedWorkspaces({
    dir: directory.parkedDir,
    bytesMax: offered ? 0 : config.parkedBytes,
    timers,
    log,
  });
  const isTaking = (): boolean => !taking.signal.aborted && diskSpace.isAvailable;
  const renewer = new LeaseRenewer(
    {
      client,
      clock,
      timers,
      timings,
      log,
      leases: () => executions.all(),
      state: () => ({ state: isTaking() ? "READY" : "DRAINING", freeSlots: isTaking() ? executions.freeSlots() : 0 }),
      onDirective: (directive) => executions.route(directive, "heartbeat"),
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
    hasFreeDisk: async () => (await diskSpace.hasFreeDisk()) || (await parked.clear(), await diskSpace.hasFreeDisk()),
    async take(leases, sent, options) {
      const answer = await client.accept({ leases: [...leases] }, options);
      executions.begin(answer.assignments, sent);
      return answer.lost;
    },
  });
  const executionDeps = {
    ...{
      client,
      appends,
      completions,
      clock,
      timers,
      timings,
      log,
      tracer,
      modelCalls,
      directory,
      parked,
      runExecution,
    },
    sandbox: {
      kind: sandbox.kind,
      isChosen: config.sandbox !== "auto",
      host: sandbox.host,
    },
    outbound: outboundRule(config.allowedInternalHosts ?? []),
    url: config.url,
    publicUrl: () => session.publicUrl,
    startFailures: new StartFailures(),
    heartbeatNow: () => outsideScopes(() => renewer.heartbeatNow()),
  };

  function end(how: { refusal?: Error }): void {
    executions.abandonAll("The worker has ended.");
    alive.abort(new Error("The worker has ended."));
    taking.abort(alive.signal.reason);
    session.close();
    finish(
      offered
        ? { ...how, oneRun: only === undefined ? "not_started" : only.isReported ? "reported" : "abandoned" }
        : how,
    );
  }

  /** Runs the offered execution in one-run mode, then drains. */
  async function runOffered(lease: LeaseRef): Promise<void> {
    try {
      const { assignment, sent } = await acceptOffered({ client, clock, timers, timings }, lease, taking.signal);
      executions.begin([assignment], sent);
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
      if (!alive.signal.aborted) log.info({ operation: "drain", count: executions.all().length }, "draining");
      taking.abort(new Error("The worker drains."));
      executions.endDebugWindows("worker_stopping");
      void renewer.heartbeatNow();
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
      const limits = [
        timers.after(config.drainMs, () => executions.stopAll("The worker is stopping.")),
        // everything is killed by then, and the leases had time to be returned
        timers.after(config.drainMs + timings().escalationStepMs * 4 + timings().returnMs, giveUp),
      ];
      await Promise.race([taken.then(() => executions.idle()), givenUp, ended]);
      for (const cancel of limits) cancel();
      end({});
      let isIdle = false;
      await atMost(
        timers,
        LAST_SANDBOXES_MS,
        executions.idle().then(() => (isIdle = true)),
      );
      // otherwise a later worker removes it when its processes have ended
      if (isIdle) await bestEffort("remove the state directory", log, () => directory.remove());
    })();
    return draining;
  }

  const taken = session.current(taking.signal).then(
    () => {
      renewer.start();
      void subscribe(
        {
          client,
          session,
          timers,
          log,
          onDirective: (directive) => executions.route(directive, "stream"),
          onWorkAvailable: () => loop.wake(),
        },
        alive.signal,
      );
      return offered ? runOffered(offered) : loop.run(taking.signal);
    },
    () => {}, // the platform refused the worker (reported to onRefused), or the drain began before registration
  );
  async function stopNow(): Promise<void> {
    taking.abort(new Error("The worker is stopping immediately."));
    const { reason, message, isFailure: failure } = WORKER_STOPPING;
    const leases = executions
      .all()
      .filter(({ isReported }) => !isReported)
      .map(({ executionId, attempt }) => ({ executionId, attempt, reason, message, failure }));
    executions.abandonAll("The worker is stopping immediately.");
    if (leases.length === 0) return;
    // so that nothing of them runs when another worker continues them
    await atMost(timers, STOP_STEP_MS, executions.idle());
    await atMost(
      timers,
      STOP_STEP_MS,
      bestEffort("return leases", log, () =>
        client.returnLeases({ leases }, { timeoutMs: STOP_STEP_MS, signal: alive.signal }),
      ),
    );
  }

  return { drain, stopNow, ended };
}

const registration = (config: WorkerConfig, sandbox: WorkerOptions["sandbox"], instanceUid: string) => ({
  workerId: config.workerId,
  instanceUid,
  version,
  backend: "direct",
  slots: config.offer === undefined ? config.slots : 1,
  harnesses: [
    { type: "oz", version },
    ...[...(sandbox.host?.harnesses ?? [])].map(([type, { version: own }]) => ({ type, version: own })),
  ],
  sandbox: sandbox.kind,
  sandboxFeatures: [...sandbox.features],
  images: [...(sandbox.host?.rootfs?.keys() ?? [])],
  arch: ARCHITECTURES[process.arch] ?? "",
});

/** Architecture names of runner definitions, by the names that Node.js uses. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/**
 * Orders the responses by the items they belong to. The platform may respond in any order; a missing response is
 * undefined.
 */
const inOrder = <O extends LeaseRef>(items: readonly LeaseRef[], answers: readonly O[]): (O | undefined)[] =>
  items.map((item) =>
    answers.find((answer) => answer.executionId === item.executionId && answer.attempt === item.attempt),
  );

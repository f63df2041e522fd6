import { bestEffort } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { outboundRule } from "@millwright/outbound";
import { outsideScopes } from "@millwright/telemetry";
import { Executions } from "./executions/executions.ts";
import { returnLeases } from "./executions/return-leases.ts";
import { ActiveExecution } from "./executions/active-execution.ts";
import { StartFailures } from "./executions/start-failures.ts";
import { LeaseRenewer } from "./leases/lease-renewer.ts";
import { LeaseLoop } from "./leases/lease-loop.ts";
import { ModelCallCounts } from "./model/model-call-counts.ts";
import { registrarClient, workerClient } from "./protocol/client.ts";
import { batchedCalls } from "./protocol/batched-calls.ts";
import { leaseOfOffer, acceptOffered, type LeaseRef } from "./protocol/offer.ts";
import { reportedSkills } from "./protocol/reported-skills.ts";
import { Session } from "./protocol/session.ts";
import { subscribe } from "./protocol/subscription.ts";
import { directRegistration } from "./registration.ts";
import type { RunningWorker, WorkerEnd, WorkerOptions } from "./running-worker.ts";
import { InstanceDirectory } from "./state/instance-directory.ts";
import { ParkedWorkspaces } from "./state/parked-workspaces.ts";
import { DiskSpace } from "./state/disk-space.ts";
import { atMost } from "./time/timers.ts";

/** How long killed sandboxes may take to exit at the end of a drain. */
const LAST_SANDBOXES_MS = 5_000;

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
  const running = new AbortController(); // aborted when the worker has ended
  const accepting = new AbortController(); // aborted when the drain begins
  let finish: (end: WorkerEnd) => void = () => {};
  const ended = new Promise<WorkerEnd>((resolve) => (finish = resolve));
  const offered = config.offer === undefined ? undefined : leaseOfOffer(config.offer);
  let only: ActiveExecution | undefined; // set in one-run mode

  const session = new Session({
    registrar: registrarClient(config.url),
    workerKey: config.offer ?? config.workerKey,
    request: {
      ...directRegistration(config, sandbox),
      instanceUid,
      skills: await reportedSkills(config.skillCheckouts),
    },
    timers,
    log,
    onRefused: (refusal) => end({ refusal }),
  });
  const { timings } = session;
  const client = workerClient(config.url, session);
  const base = { client, clock, timers, timings, log };
  const batched = batchedCalls(client, timers, () => ({ timeoutMs: timings().callTimeoutMs, signal: running.signal }));
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
  const isAccepting = (): boolean => !accepting.signal.aborted && diskSpace.isAvailable;
  const renewer = new LeaseRenewer(
    {
      ...base,
      leases: () => executions.all(),
      state: () => ({
        state: isAccepting() ? "READY" : "DRAINING",
        freeSlots: isAccepting() ? executions.freeSlots() : 0,
      }),
      onDirective: (directive) => executions.route(directive, "heartbeat"),
      modelCalls,
    },
    running.signal,
  );
  const loop = new LeaseLoop({
    ...base,
    freeSlots: () => executions.freeSlots(),
    slotFreed: () => executions.slotFreed(),
    hasFreeDisk: async () => (await diskSpace.hasFreeDisk()) || (await parked.clear(), await diskSpace.hasFreeDisk()),
    async take(leases, sent, options) {
      const response = await client.accept({ leases: [...leases] }, options);
      executions.begin(response.assignments, sent);
      return response.lost;
    },
  });
  const executionDeps = {
    ...{ ...base, ...batched, tracer, modelCalls, directory, parked, runExecution },
    sandbox: { kind: sandbox.kind, isChosen: config.sandbox !== "auto", host: sandbox.host },
    outbound: outboundRule(config.allowedInternalHosts ?? []),
    gitCaFile: config.gitCaFile,
    url: config.url,
    publicUrl: () => session.publicUrl,
    startFailures: new StartFailures(),
    heartbeatNow: () => outsideScopes(() => renewer.heartbeatNow()),
  };

  function end(workerEnd: Pick<WorkerEnd, "refusal">): void {
    executions.abandonAll("The worker has ended.");
    running.abort(new Error("The worker has ended."));
    accepting.abort(running.signal.reason);
    session.close();
    finish(
      offered
        ? { ...workerEnd, oneRun: only === undefined ? "not_started" : only.isReported ? "reported" : "abandoned" }
        : workerEnd,
    );
  }

  /** Runs the offered execution in one-run mode, then drains. */
  async function runOffered(lease: LeaseRef): Promise<void> {
    try {
      const { assignment, sent } = await acceptOffered(base, lease, accepting.signal);
      executions.begin([assignment], sent);
      await executions.idle();
    } catch (error) {
      if (accepting.signal.aborted) return;
      return end({ refusal: error as Error });
    }
    void drain();
  }

  let draining: Promise<void> | undefined;
  function drain(): Promise<void> {
    draining ??= (async () => {
      if (!running.signal.aborted) log.info({ operation: "drain", count: executions.all().length }, "draining");
      accepting.abort(new Error("The worker drains."));
      executions.endDebugWindows("worker_stopping");
      void renewer.heartbeatNow();
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
      const limits = [
        timers.after(config.drainMs, () => executions.stopAll("The worker is stopping.")),
        // everything is killed by then, and the leases had time to be returned
        timers.after(config.drainMs + timings().escalationStepMs * 4 + timings().returnMs, giveUp),
      ];
      await Promise.race([loopEnded.then(() => executions.idle()), givenUp, ended]);
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

  const loopEnded = session.current(accepting.signal).then(
    () => {
      renewer.start();
      void subscribe(
        {
          ...base,
          session,
          onDirective: (directive) => executions.route(directive, "stream"),
          onWorkAvailable: () => loop.wake(),
        },
        running.signal,
      );
      return offered ? runOffered(offered) : loop.run(accepting.signal);
    },
    () => {}, // the platform refused the worker (reported to onRefused), or the drain began before registration
  );
  async function stopNow(): Promise<void> {
    const why = "The worker is stopping immediately.";
    accepting.abort(new Error(why));
    await returnLeases({ ...base, executions }, why, running.signal);
  }

  return { drain, stopNow, ended };
}

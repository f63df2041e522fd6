import type { Clock } from "@millwright/clock";
import type { worker } from "@millwright/contracts";
import { outsideScopes, type Logger } from "@millwright/telemetry";
import type { Backend } from "./backends/backend.ts";
import { Dispatcher } from "./backends/dispatcher.ts";
import type { WorkerConfig } from "./config.ts";
import { LeaseRenewer } from "./leases/lease-renewer.ts";
import { LeaseLoop } from "./leases/lease-loop.ts";
import { ModelCallCounts } from "./model/model-call-counts.ts";
import { registrarClient, workerClient } from "./protocol/client.ts";
import { Session } from "./protocol/session.ts";
import { subscribe } from "./protocol/subscription.ts";
import { workerVersion } from "./protocol/worker-version.ts";
import type { RunningWorker, WorkerEnd } from "./running-worker.ts";
import { atMost, type Timers } from "./time/timers.ts";

export type DispatcherOptions = {
  readonly config: WorkerConfig;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
};

/** How long returning leases may take at the end of a drain. */
const RETURN_MS = 5_000;

/**
 * Starts a worker that runs no executions itself: it accepts offers, has machines started for them, and watches their
 * leases. Throws the errors of the backend's records.
 */
export async function startDispatcher({
  config,
  backend,
  clock,
  timers,
  log,
}: DispatcherOptions): Promise<RunningWorker> {
  const alive = new AbortController();
  const taking = new AbortController();
  let finish: (end: WorkerEnd) => void = () => {};
  const ended = new Promise<WorkerEnd>((resolve) => (finish = resolve));
  const session = new Session({
    registrar: registrarClient(config.url),
    workerKey: config.workerKey,
    request: { ...registration(config, backend), instanceUid: await backend.instanceUid() },
    timers,
    log,
    onRefused: (refusal) => end({ refusal }),
  });
  const { timings } = session;
  const client = workerClient(config.url, session);
  const dispatcher = new Dispatcher({
    backend,
    client,
    clock,
    timers,
    timings,
    log,
    slots: config.slots,
    startTimeoutMs: config.backendStartTimeoutMs,
    signal: alive.signal,
  });
  await dispatcher.reattach();
  const isTaking = (): boolean => !taking.signal.aborted;
  const renewer = new LeaseRenewer(
    {
      client,
      clock,
      timers,
      timings,
      log,
      leases: () => [],
      watched: () => dispatcher.all(),
      state: () => ({ state: isTaking() ? "READY" : "DRAINING", freeSlots: isTaking() ? dispatcher.freeSlots() : 0 }),
      onDirective: () => {}, // the watched statuses contain the same information
      modelCalls: new ModelCallCounts(),
    },
    alive.signal,
  );
  /** Directives concern executions that no machine has accepted yet. The next heartbeat returns their status. */
  const onDirective = ({ directive }: worker.Directive): void =>
    void (directive.case === "drain" ? drain() : heartbeatNow());
  const heartbeatNow = () => outsideScopes(() => renewer.heartbeatNow());
  const loop = new LeaseLoop({
    client,
    clock,
    timers,
    timings,
    log,
    freeSlots: () => dispatcher.freeSlots(),
    slotFreed: () => dispatcher.changed(),
    hasFreeDisk: async () => true,
    async take(leases, _sent, options) {
      const { executions, lost } = await client.dispatch({ leases: [...leases] }, options);
      dispatcher.begin(executions);
      return lost;
    },
  });
  backend.watch?.(() => dispatcher.checkAll(), alive.signal);

  function end(how: WorkerEnd): void {
    alive.abort(new Error("The worker has ended."));
    taking.abort(alive.signal.reason);
    session.close();
    finish(how);
  }

  let draining: Promise<void> | undefined;
  /**
   * Drains the dispatcher. Executions that a machine has accepted continue without this worker. For the others, the
   * worker waits until a machine accepts them, so that no machine has to be started again. After `drainMs`, it returns
   * their leases.
   */
  function drain(): Promise<void> {
    draining ??= (async () => {
      log.info({ operation: "drain", count: dispatcher.all().length }, "draining");
      taking.abort(new Error("The worker drains."));
      void heartbeatNow();
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
      const cancel = timers.after(config.drainMs, giveUp);
      await Promise.race([taken.then(() => dispatcher.settled()), givenUp, ended]);
      cancel();
      await atMost(timers, RETURN_MS, dispatcher.giveBack());
      end({});
    })();
    return draining;
  }

  const taken = session.current(taking.signal).then(
    () => {
      renewer.start();
      void subscribe({ client, session, timers, log, onDirective, onWorkAvailable: () => loop.wake() }, alive.signal);
      return loop.run(taking.signal);
    },
    () => {},
  );
  return { drain, stopNow: async () => end({}), ended };
}

const registration = (config: WorkerConfig, backend: Backend) => ({
  workerId: config.workerId,
  version: workerVersion,
  backend: backend.name,
  slots: config.slots,
  harnesses: config.backendHarnesses.map((type) => ({ type, version: "" })),
  sandbox: "remote",
  sandboxFeatures: [`backend=${backend.name}`],
  images: [...(backend.images ?? [])],
});

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
import { dispatcherRegistration } from "./registration.ts";
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
  const running = new AbortController();
  const accepting = new AbortController();
  let finish: (end: WorkerEnd) => void = () => {};
  const ended = new Promise<WorkerEnd>((resolve) => (finish = resolve));
  const session = new Session({
    registrar: registrarClient(config.url),
    workerKey: config.workerKey,
    request: { ...dispatcherRegistration(config, backend), instanceUid: await backend.instanceUid() },
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
    signal: running.signal,
  });
  await dispatcher.reattach();
  const isAccepting = (): boolean => !accepting.signal.aborted;
  const renewer = new LeaseRenewer(
    {
      client,
      clock,
      timers,
      timings,
      log,
      leases: () => [],
      watched: () => dispatcher.all(),
      state: () => ({
        state: isAccepting() ? "READY" : "DRAINING",
        freeSlots: isAccepting() ? dispatcher.freeSlots() : 0,
      }),
      onDirective: () => {}, // the watched statuses contain the same information
      modelCalls: new ModelCallCounts(),
    },
    running.signal,
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
  backend.watch?.(() => dispatcher.checkAll(), running.signal);

  function end(workerEnd: WorkerEnd): void {
    running.abort(new Error("The worker has ended."));
    accepting.abort(running.signal.reason);
    session.close();
    finish(workerEnd);
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
      accepting.abort(new Error("The worker drains."));
      void heartbeatNow();
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
      const cancel = timers.after(config.drainMs, giveUp);
      await Promise.race([loopEnded.then(() => dispatcher.settled()), givenUp, ended]);
      cancel();
      await atMost(timers, RETURN_MS, dispatcher.returnLeases());
      end({});
    })();
    return draining;
  }

  const loopEnded = session.current(accepting.signal).then(
    () => {
      renewer.start();
      void subscribe({ client, session, timers, log, onDirective, onWorkAvailable: () => loop.wake() }, running.signal);
      return loop.run(accepting.signal);
    },
    () => {},
  );
  return { drain, stopNow: async () => end({}), ended };
}

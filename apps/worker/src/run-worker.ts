import { systemClock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import { startTracing, type Logger } from "@millwright/telemetry";
import { probeHarnesses } from "./adapters/probe-harnesses.ts";
import { openBackend } from "./backends/open-backend.ts";
import { startDispatcher } from "./compose-dispatcher.ts";
import type { WorkerConfig } from "./config.ts";
import { exitMisconfigured, EXIT_ABANDONED, EXIT_OFFER_GONE, EXIT_REFUSED, printForOperator } from "./exit.ts";
import { runExecution } from "./harness/run-execution.ts";
import { onParentGone } from "./parent.ts";
import type { RunningWorker, WorkerOptions } from "./running-worker.ts";
import { probeSandbox } from "./sandbox/probe.ts";
import { systemTimers } from "./time/timers.ts";

/**
 * Runs a worker, or the dispatcher of a backend, until it has drained. Then ends the process with the exit code for the
 * outcome.
 */
export async function runWorker(
  config: WorkerConfig,
  log: Logger,
  startWorker: (options: WorkerOptions) => Promise<RunningWorker>,
): Promise<never> {
  const tracing = await startTracing(config.tracing, { log });
  const base = { config, clock: systemClock, timers: systemTimers, log };
  const backend = await openBackend(config, base);
  const sandbox = backend ? undefined : await probeMachine();
  const worker = backend
    ? await startDispatcher({ ...base, backend })
    : await startWorker({ ...base, sandbox: sandbox!, runExecution, tracer: tracing.tracer("worker") });

  const signals = config.supervised ? (["SIGTERM"] as const) : (["SIGTERM", "SIGINT"] as const);
  if (config.supervised) {
    onParentGone(process, () => void exitNow("parent_gone"));
    process.on("SIGINT", () => {}); // Ctrl-C reaches the whole process group; the parent decides
  }
  let isDraining = false;
  let isStopping = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (isDraining) void exitNow(signal);
      else void worker.drain();
      isDraining = true;
    });
  }

  const { refusal, oneRun } = await worker.ended;
  if (refusal) printForOperator(`The platform at ${config.url} refuses this worker: ${refusal.message}`);
  await worker.drain();
  sandbox?.host.cgroups?.close();
  await tracing.stop();
  return process.exit(exitCode());

  function exitCode(): number {
    if (oneRun === "abandoned") return EXIT_ABANDONED;
    if (oneRun === "not_started" && (!refusal || (isDomainError(refusal) && refusal.reason === "offer_gone")))
      return EXIT_OFFER_GONE;
    return refusal ? EXIT_REFUSED : 0;
  }

  /** Returns the leases and ends the process within seconds. A second call ends it immediately. */
  async function exitNow(reason: string): Promise<void> {
    log.warn({ operation: "stop", reason }, "ending at once");
    if (!isStopping) {
      isStopping = true;
      await worker.stopNow();
    }
    sandbox?.host.cgroups?.close();
    process.exit(0);
  }

  /** Returns the sandbox and the harnesses of this machine. */
  async function probeMachine() {
    const probed = await probeSandbox(config).catch(exitMisconfigured);
    const { host, warnings } = await probeHarnesses(probed.host, {
      claude: config.claude,
      codex: config.codex,
      gemini: config.gemini,
      opencode: config.opencode,
    });
    for (const warning of [...probed.warnings, ...warnings]) {
      log.warn({ operation: "probeSandbox", reason: probed.kind }, warning);
      printForOperator(warning);
    }
    return {
      ...probed,
      host: {
        ...host,
        startTimeoutMs: config.sandboxStartTimeoutMs,
        ownImage: config.ownImage || undefined,
      },
    };
  }
}

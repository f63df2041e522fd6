import { systemClock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import { createLogger, startTracing } from "@millwright/telemetry";
import { probeHarnesses } from "./adapters/probe-harnesses.ts";
import { openBackend } from "./backends/open-backend.ts";
import { startDispatcher } from "./compose-dispatcher.ts";
import { startWorker } from "./compose.ts";
import { loadConfig } from "./config.ts";
import { runExecution } from "./harness/run-execution.ts";
import { onParentGone } from "./parent.ts";
import { probeSandbox } from "./sandbox/probe.ts";
import { systemTimers } from "./time.ts";

/** Exit codes as the command line client has them. */
const EXIT_MISCONFIGURED = 2;
const EXIT_REFUSED = 3;
/** One-run mode: the offer was not open (any more), and nothing was run; what was run was not reported, and its next attempt goes on. */
const EXIT_OFFER_GONE = 4;
const EXIT_LEFT = 5;

const config = readConfigOrExit();
const log = createLogger({ service: "worker", level: config.logLevel });
const tracing = await startTracing(config.tracing, { log });
const base = { config, clock: systemClock, timers: systemTimers, log };
const backend = await openBackend(config, base);
const sandbox = backend ? undefined : await probeMachine();
const worker = backend ? await startDispatcher({ ...base, backend }) : await startWorker({ ...base, sandbox: sandbox!, runExecution, tracer: tracing.tracer("worker") });

const signals = config.supervised ? (["SIGTERM"] as const) : (["SIGTERM", "SIGINT"] as const);
if (config.supervised) {
  onParentGone(process, () => exitNow("parent_gone"));
  process.on("SIGINT", () => {}); // Ctrl-C reaches the whole group; the parent decides
}
let isDraining = false;
for (const signal of signals) {
  process.on(signal, () => {
    if (isDraining) exitNow(signal);
    isDraining = true;
    void worker.drain();
  });
}

const { refusal, oneRun } = await worker.ended;
if (refusal) log.error({ operation: "Register", error: refusal }, "the platform refuses this worker");
await worker.drain();
sandbox?.host.cgroups?.close();
await tracing.stop();
process.exit(exitCode());

function exitCode(): number {
  if (oneRun === "left") return EXIT_LEFT;
  if (oneRun === "not_begun" && (!refusal || (isDomainError(refusal) && refusal.reason === "offer_gone"))) return EXIT_OFFER_GONE;
  return refusal ? EXIT_REFUSED : 0;
}

function exitNow(reason: string): never {
  log.warn({ operation: "stop", reason }, "ending at once");
  worker.killNow();
  sandbox?.host.cgroups?.close();
  process.exit(0);
}

/** What this machine offers to executions that run on it. */
async function probeMachine() {
  const probed = await probeSandbox(config);
  const { host, warnings } = await probeHarnesses(probed.host, { claude: config.claude, codex: config.codex, gemini: config.gemini, opencode: config.opencode });
  for (const warning of [...probed.warnings, ...warnings]) log.warn({ operation: "probeSandbox", reason: probed.kind }, warning);
  return { ...probed, host: config.ownImage === "" ? host : { ...host, ownImage: config.ownImage } };
}

function readConfigOrExit() {
  try {
    return loadConfig(process.env);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(EXIT_MISCONFIGURED);
  }
}

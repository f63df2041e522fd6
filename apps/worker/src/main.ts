import { createLogger, ignoreStandardStreamErrors } from "@millwright/telemetry";
import { loadConfig } from "./config.ts";
import { exitMisconfigured, printForOperator } from "./exit.ts";
import { closeInheritedDescriptors } from "./inherited-descriptors.ts";
import { dropPrivileges } from "./privileges/drop-privileges.ts";

ignoreStandardStreamErrors(process);
closeInheritedDescriptors(process.env);
const config = readConfigOrExit();
const log = createLogger({ service: "worker", level: config.logLevel });
const reason = await dropPrivileges(config, process.env);
if (reason !== undefined) {
  const warning = `The worker runs as root, because it cannot switch to another user here (${reason}). Start it as a user of its own.`;
  log.warn({ operation: "dropPrivileges" }, warning);
  printForOperator(warning);
}
// A worker that switches to another user starts again. The imports come afterwards so that they are not loaded twice.
const [{ startWorker }, { runWorker }] = await Promise.all([import("./compose.ts"), import("./run-worker.ts")]);
await runWorker(config, log, startWorker);

function readConfigOrExit() {
  try {
    return loadConfig(process.env);
  } catch (error) {
    return exitMisconfigured(error as Error);
  }
}

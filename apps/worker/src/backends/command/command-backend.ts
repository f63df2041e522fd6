import type { Logger } from "@millwright/telemetry";
import { MachineFailed, type Backend, type EndReason, type Machine, type Order } from "../backend.ts";
import { MachineRecords } from "./machine-records.ts";
import { runCommand, type CommandEnd } from "./run-command.ts";

export type CommandSettings = {
  readonly url: string;
  readonly workerId: string;
  readonly dir: string;
  readonly dispatchCommand: string;
  /** Empty: no cancel command. */
  readonly cancelCommand: string;
  readonly timeoutMs: number;
  /** The base environment of every command: PATH and HOME. */
  readonly hostEnv: Readonly<Record<string, string>>;
};

const PAYLOAD_VERSION = 1;
const OFFER = /mwo_[\w-]+/g;

/**
 * Starts machines by running the operator's commands. The dispatch command receives an execution on standard input; if
 * it succeeds, another system is responsible for that execution. Throws the errors of opening the machine records.
 */
export function commandBackend(
  { url, workerId, dir, dispatchCommand, cancelCommand, timeoutMs, hostEnv }: CommandSettings,
  log: Logger,
): Backend {
  const records = MachineRecords.open(dir);
  const about = ({ executionId, attempt, runUid }: Pick<Machine, "executionId" | "attempt" | "runUid">) => ({
    version: PAYLOAD_VERSION,
    run_id: runUid,
    execution_id: String(executionId),
    attempt,
    worker_id: workerId,
    server_root_url: url,
  });
  const run = (
    command: string,
    machine: Pick<Machine, "executionId" | "attempt" | "runUid">,
    more: object,
  ): Promise<CommandEnd> =>
    runCommand({
      command,
      input: { ...about(machine), ...more },
      env: {
        ...hostEnv,
        MILLWRIGHT_RUN_ID: machine.runUid,
        MILLWRIGHT_EXECUTION_ID: String(machine.executionId),
        MILLWRIGHT_ATTEMPT: String(machine.attempt),
        MILLWRIGHT_WORKER_ID: workerId,
      },
      timeoutMs,
      outputFile: records.outputFile(machine),
    });

  return {
    name: "command",
    instanceUid: async () => records.instanceUid(),
    known: async () => records.all(),
    async start(order, startedMs) {
      const { executionId, attempt, runUid } = order;
      // The record is written first, because the command may have taken effect before a crash.
      records.put({ executionId, attempt, runUid, startedMs });
      const { outcome, endDescription, output } = await run(dispatchCommand, order, needsOf(order, url));
      if (outcome === "ok") return;
      const message = output.replaceAll(OFFER, "***");
      throw new MachineFailed(
        outcome === "timeout" ? "dispatch_timeout" : "dispatch_command",
        `The dispatch command ${endDescription}.${message === "" ? "" : ` Its output: ${message}`}`,
      );
    },
    faultOf: async () => undefined, // only the lease reports the state of a machine
    async end(machine: Machine, why: EndReason) {
      if (cancelCommand !== "") {
        const { outcome, endDescription, output } = await run(cancelCommand, machine, { reason: why });
        if (outcome !== "ok") throw new Error(`The cancel command ${endDescription}. ${output}`);
        log.info(
          {
            operation: "cancel_command",
            executionId: String(machine.executionId),
            attempt: machine.attempt,
            reason: why,
          },
          "a machine was cancelled",
        );
      }
      records.remove(machine);
    },
    forget: async (machine) => records.remove(machine),
  };
}

/**
 * Returns the dispatch command's input. `env` is the complete configuration of the worker on the machine (the URL and
 * the offer token) and is the only part that contains a secret.
 */
const needsOf = ({ offerToken, title, harness, dockerImage, instanceShape }: Order, url: string) => ({
  title,
  harness,
  docker_image: dockerImage,
  instance_shape: instanceShape && { vcpus: instanceShape.vcpus, memory_gb: instanceShape.memoryGb },
  env: { MILLWRIGHT_URL: url, MILLWRIGHT_WORKER_OFFER: offerToken },
});

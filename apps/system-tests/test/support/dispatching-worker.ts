import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { eventually } from "@millwright/testing";
import { type Deployment, killAll, processesWith, Program } from "@millwright/test-platform";
import type { Client } from "./client.ts";
import { SLOW_MS } from "./deployment.ts";
import { teamOf } from "./resources.ts";

const WORKER_MAIN = fileURLToPath(new URL("../../../worker/src/main.ts", import.meta.url));

/**
 * The program of an operator's backend: starts a worker on a machine, here the same one, with only the given
 * environment.
 */
const MACHINE = `
import { spawn } from "node:child_process";
import { openSync } from "node:fs";
const [, , directory] = process.argv;
const { env, run_id } = JSON.parse(await new Response(process.stdin).text());
const log = openSync(directory + "/machines.log", "a");
const argv = ["--conditions=@millwright/source", "--no-warnings", ${JSON.stringify(WORKER_MAIN)}];
spawn(process.execPath, argv, {
  detached: true, stdio: ["ignore", log, log],
  env: { PATH: process.env.PATH, HOME: process.env.HOME, MACHINE_OF: run_id, MILLWRIGHT_WORKER_DIR: directory + "/machine-" + run_id, MILLWRIGHT_SANDBOX: "none", MILLWRIGHT_WORKER_USER: "root", ...env },
}).unref();
`;

/**
 * A worker with the id `depot` that delegates each run to a separate machine: processes on this machine, started and
 * cancelled by commands.
 */
export class DispatchingWorker {
  /** The worker key of the team; further workers may use it. */
  readonly key: string;
  readonly #platform: Deployment;
  #program: Program | undefined;

  private constructor(platform: Deployment, key: string) {
    this.#platform = platform;
    this.key = key;
  }

  /** Resolves when the worker is registered. */
  static async start(platform: Deployment, api: Client): Promise<DispatchingWorker> {
    const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, { name: "worker", kind: "worker" });
    writeFileSync(platform.path("machine.mjs"), MACHINE);
    const worker = new DispatchingWorker(platform, key);
    await worker.launch();
    return worker;
  }

  async launch(): Promise<void> {
    const { url, dir } = this.#platform;
    const path = (name: string): string => this.#platform.path(name);
    const program = new Program("worker/src/main.ts", {
      log: path("depot.log"),
      env: {
        MILLWRIGHT_URL: url,
        MILLWRIGHT_WORKER_KEY: this.key,
        MILLWRIGHT_WORKER_ID: "depot",
        MILLWRIGHT_WORKER_DIR: path("depot"),
        MILLWRIGHT_BACKEND: "command",
        MILLWRIGHT_BACKEND_DISPATCH_COMMAND: `if rm '${path("closed-once")}' 2>/dev/null || test -e '${path("closed")}'; then echo the depot is closed; exit 1; fi; '${process.execPath}' '${path("machine.mjs")}' '${dir}'`,
        MILLWRIGHT_BACKEND_CANCEL_COMMAND: `cat >> '${path("cancelled")}'`,
      },
    });
    this.#program = program;
    await eventually(() => program.output().includes('"registered"'), { timeoutMs: SLOW_MS });
  }

  output(): string {
    return this.#program?.output() ?? "";
  }

  /** Returns the number of running processes of a run's machine. */
  machinesOf(runId: string): number {
    return processesWith(`MACHINE_OF=${runId}`).length;
  }

  /** Returns the reason of each request to cancel a run's machine. */
  cancelledFor(runId: string): string[] {
    const file = this.#platform.path("cancelled");
    if (!existsSync(file)) return [];
    const cancellations: { run_id: string; reason: string }[] = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    return cancellations.flatMap(({ run_id, reason }) => (run_id === runId ? [reason] : []));
  }

  /** Sends SIGKILL to the worker. Its machines continue to run. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Kills the worker and its machines. */
  async remove(): Promise<void> {
    await this.kill();
    killAll(processesWith(this.#platform.path("machine-")).map(({ pid }) => pid));
  }
}

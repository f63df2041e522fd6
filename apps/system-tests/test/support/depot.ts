import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { eventually } from "@millwright/testing";
import { killAll, processesWith, Program, type Deployment } from "../../src/index.ts";
import type { Client } from "./client.ts";
import { SLOW_MS } from "./deployment.ts";
import { teamOf } from "./world.ts";

const WORKER_MAIN = fileURLToPath(new URL("../../../worker/src/main.ts", import.meta.url));

/** What an operator would have: it starts the worker somewhere, here on the same machine, with nothing but what it was told. */
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

/** A worker with the id `depot` that has each of its runs executed by a machine of its own: processes here, started and cancelled by commands. */
export class Depot {
  /** Of the team; for workers beside it too. */
  readonly key: string;
  readonly #platform: Deployment;
  #program: Program | undefined;

  private constructor(platform: Deployment, key: string) {
    this.#platform = platform;
    this.key = key;
  }

  /** Answers when it is registered. */
  static async start(platform: Deployment, api: Client): Promise<Depot> {
    const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, { name: "worker", kind: "worker" });
    writeFileSync(platform.path("machine.mjs"), MACHINE);
    const depot = new Depot(platform, key);
    await depot.launch();
    return depot;
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

  /** How many processes of a run's machine live. */
  machinesOf(runId: string): number {
    return processesWith(`MACHINE_OF=${runId}`).length;
  }

  /** Why a run's machine was to be cancelled, as often as it was. */
  cancelledFor(runId: string): string[] {
    const file = this.#platform.path("cancelled");
    if (!existsSync(file)) return [];
    const told: { run_id: string; reason: string }[] = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    return told.flatMap(({ run_id, reason }) => (run_id === runId ? [reason] : []));
  }

  /** SIGKILL to the worker; its machines live on. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Ends it with its machines. */
  async remove(): Promise<void> {
    await this.kill();
    killAll(processesWith(this.#platform.path("machine-")).map(({ pid }) => pid));
  }
}

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedPostgres, freePort } from "@millwright/database";
import { preparePostgres } from "./cost.ts";
import type { NamedProcess } from "./process-stat.ts";
import type { Setup } from "./results.ts";

export const ROOT = join(import.meta.dirname, "../..");
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
/** Node flags of every program of this repository. */
const FLAGS = ["--conditions=@millwright/source", "--no-warnings"];

export const API_KEY = "mw_the-owners-key-of-the-benchmark";

export type Program = { readonly child: ChildProcess; output(): string; stop(): Promise<void> };

/** Child processes, which are killed when this process exits. */
const started = new Set<ChildProcess>();
process.once("exit", () => started.forEach((child) => child.kill("SIGKILL")));

/**
 * Starts a program of this repository; `main` is its path in the repository. Its environment is PATH and HOME of this
 * process, and `env`.
 */
export function startProgram(
  main: string,
  dir: string,
  env: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): Program {
  const log = join(dir, `${main.replaceAll("/", "-")}.log`);
  const output = openSync(log, "a", 0o600);
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [...FLAGS, ...flags, join(ROOT, main)], {
    stdio: ["ignore", output, output],
    env: { PATH, HOME, ...env },
  });
  closeSync(output);
  started.add(child);
  return { child, output: () => readFileSync(log, "utf8"), stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(late);
}

/**
 * Waits until a program returns 200 at the URL. Throws an Error with the end of its output if it exits or the time
 * limit passes.
 */
export async function untilReady(program: Program, url: string): Promise<void> {
  for (
    const deadline = Date.now() + START_TIMEOUT_MS;
    !(await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ));
    await pause(50)
  ) {
    if (program.child.exitCode !== null || Date.now() > deadline)
      throw new Error(`The program did not start:\n${program.output().slice(-2_000)}`);
  }
}

export type Platform = {
  readonly setup: Setup;
  readonly url: string;
  /** Origin to which webhooks are delivered. */
  readonly webhookUrl: string;
  readonly nats?: { readonly url: string; readonly pid: number };
  /** Returns the processes of the platform, without those of PostgreSQL and NATS. */
  processes(): NamedProcess[];
  /** Returns the URL of a database on the platform's PostgreSQL server, over the same kind of connection. */
  databaseUrl(name: string): string;
  stop(): Promise<void>;
};

/** Returns the processes whose processor time an operation of the platform uses, besides those of PostgreSQL. */
export const serversOf = (platform: Platform): NamedProcess[] => [
  ...platform.processes(),
  ...(platform.nats ? [{ name: "nats", pid: platform.nats.pid }] : []),
];

/**
 * Starts the standalone platform in a separate process, with its embedded PostgreSQL in the default configuration
 * (fsync on).
 */
export async function startPlatform(
  dir: string,
  options: { workers: number; flags?: readonly string[] },
): Promise<Platform> {
  const dataDir = join(dir, "data");
  mkdirSync(dataDir, { recursive: true });
  const url = `http://127.0.0.1:${await freePort()}`;
  const env = {
    PORT: new URL(url).port,
    MILLWRIGHT_DATA_DIR: dataDir,
    MILLWRIGHT_BOOTSTRAP_API_KEY: API_KEY,
    MILLWRIGHT_WORKERS: String(options.workers),
  };
  await preparePostgres(join(dataDir, "postgres"));
  const program = startProgram("apps/standalone/src/main.ts", dir, env, options.flags);
  try {
    await untilReady(program, `${url}/readyz`);
    const postgres = await EmbeddedPostgres.start({ dataDir: join(dataDir, "postgres") }); // adopts the running one
    const pid = program.child.pid ?? 0;
    return {
      setup: "standalone",
      url,
      webhookUrl: url,
      processes: () => [{ name: "platform", pid }],
      databaseUrl: (name) => postgres.localUrl(name),
      stop: () => program.stop(),
    };
  } catch (error) {
    await program.stop();
    throw error;
  }
}

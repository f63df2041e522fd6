import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "@millwright/database";
import { ROOT } from "../platform.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";

const WARM_STARTS = 5;
const POLL_MS = 10;

/**
 * Measures `npm start` on existing data, from the command until the platform is ready. The first start, which creates
 * the data, is not counted.
 */
export async function measureStart(dir: string): Promise<Measured[]> {
  const times: number[] = [];
  for (let n = 0; n <= WARM_STARTS; n++) times.push(await startOnce(dir));
  return [{ what: "npm start, warm, to ready", who: "millwright", latencyMs: summarize(times.slice(1)) }];
}

/** Returns the duration of one start in milliseconds. Stops the platform afterwards. */
async function startOnce(dir: string): Promise<number> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { PATH = "", HOME = "" } = process.env;
  const beganMs = performance.now();
  // A group of its own, because npm does not forward signals to the commands of its shell.
  const npm = spawn("npm", ["start"], {
    cwd: ROOT,
    detached: true,
    stdio: "ignore",
    env: { PATH, HOME, PORT: new URL(url).port, MILLWRIGHT_DATA_DIR: dir },
  });
  const ended = once(npm, "exit");
  try {
    await untilReady(npm, url);
    return performance.now() - beganMs;
  } finally {
    if (npm.exitCode === null) process.kill(-npm.pid!, "SIGTERM");
    await ended;
    await untilStopped(dir);
  }
}

async function untilReady(npm: ChildProcess, url: string): Promise<void> {
  while (!(await isReady(url))) {
    if (npm.exitCode !== null) throw new Error(`npm start exited with ${npm.exitCode}.`);
    await pause(POLL_MS);
  }
}

/**
 * Waits until the platform has stopped its PostgreSQL, the last thing it does: npm can exit before, and the next start
 * would wait for it.
 */
async function untilStopped(dir: string): Promise<void> {
  while (existsSync(join(dir, "postgres", "cluster", "postmaster.pid"))) await pause(POLL_MS);
}

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

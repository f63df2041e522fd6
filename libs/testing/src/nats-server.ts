import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@millwright/database";
import { eventually } from "./eventually.ts";

export type NatsServer = {
  url: string;
  /** Stops the server; with `wipe`, deletes its data as well. */
  stop(options?: { wipe?: boolean }): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Stops it for good and removes its files. */
  close(): Promise<void>;
};

/** Starts a private NATS server with JetStream. Use it inside `needs("nats-server", …)`. */
export async function natsServer(): Promise<NatsServer> {
  const dir = await mkdtemp(join(tmpdir(), "millwright-nats-"));
  const port = await freePort();
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const args = ["--addr", "127.0.0.1", "--port", String(port), "--jetstream", "--store_dir", dir];
    child = spawn("nats-server", args, { stdio: "ignore" });
    await eventually(() => accepts(port));
  }
  async function stop({ wipe = false } = {}): Promise<void> {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    if (wipe) await rm(dir, { recursive: true, force: true });
  }
  await start();
  return { url: `nats://127.0.0.1:${port}`, start, stop, close: () => stop({ wipe: true }) };
}

function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

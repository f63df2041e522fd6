import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { steadyPort } from "./ports.ts";

const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 50;

export class Nats {
  readonly url: string;
  readonly #port: number;
  readonly #dir: string;
  #child: ChildProcess | undefined;

  private constructor(port: number, dir: string) {
    this.url = `nats://127.0.0.1:${port}`;
    this.#port = port;
    this.#dir = dir;
  }

  /** Creates a server that is not started yet. Returns undefined if nats-server is not installed. */
  static async in(dir: string): Promise<Nats | undefined> {
    try {
      execFileSync("nats-server", ["--version"], { stdio: "ignore" });
    } catch {
      return undefined;
    }
    return new Nats(await steadyPort(), dir);
  }

  /** Resolves when the server accepts connections. */
  async start(): Promise<void> {
    await mkdir(this.#dir, { recursive: true });
    const child = spawn(
      "nats-server",
      ["--addr", "127.0.0.1", "--port", String(this.#port), "--jetstream", "--store_dir", this.#dir],
      { stdio: "ignore" },
    );
    this.#child = child;
    for (const deadline = Date.now() + READY_TIMEOUT_MS; !(await accepts(this.#port)); await pause(POLL_MS)) {
      if (hasEnded(child) || Date.now() > deadline) throw new Error("nats-server did not start.");
    }
  }

  /** Kills the server with SIGKILL and deletes all of its data. */
  async wipe(): Promise<void> {
    await this.end("SIGKILL");
    await rm(this.#dir, { recursive: true, force: true });
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (!child || hasEnded(child)) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const connected = await Promise.race([
    once(socket, "connect").then(() => true),
    once(socket, "error").then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return connected;
}

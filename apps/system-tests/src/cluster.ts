import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedPostgres, ensureDatabase, freePort } from "@millwright/database";
import { FrontDoor } from "./front-door.ts";
import { OWNER_KEY } from "./platform.ts";
import { killAll, processesWith } from "./processes.ts";
import { Program } from "./program.ts";

export const SERVICES = ["gateway", "orchestrator", "factories"] as const;
export type ServiceName = (typeof SERVICES)[number];

export type ClusterOptions = {
  /** Of each service; default 2. */
  replicas?: number;
  /** Default 2. */
  workers?: number;
  /** Divides leases, offers and heartbeats. */
  timeScale?: number;
  /** Where everything lies; default: a new directory, removed at the end. */
  dir?: string;
  ownerKey?: string;
  /** More settings, for every replica, such as a bucket for files; OpenTelemetry's for the workers too. */
  env?: Readonly<Record<string, string>>;
};

type Replica = { readonly grpcPort: number; readonly opsPort: number; readonly port: number; program?: Program };

const READY_TIMEOUT_MS = 90_000;
const POLL_MS = 50;
const WORKER_KEY = `mww_${randomBytes(32).toString("base64url")}`;

/**
 * The platform as separate processes on the loopback address: replicas of each service behind one front door, workers,
 * nats-server (where it is installed) and an embedded PostgreSQL.
 */
export class Cluster {
  readonly dir: string;
  /** Where users and workers go. */
  readonly url: string;
  readonly ownerKey: string;
  readonly hasNats: boolean;
  readonly #o: Required<Pick<ClusterOptions, "workers" | "timeScale" | "env">>;
  readonly #door: FrontDoor;
  readonly #postgres: EmbeddedPostgres;
  readonly #replicas: Readonly<Record<ServiceName, readonly Replica[]>>;
  readonly #secrets = Object.fromEntries(["master", ...SERVICES].map((name) => [name, randomBytes(32).toString("base64")]));
  readonly #natsPort: number;
  #nats: ChildProcess | undefined;
  #workers: Program[] = [];

  private constructor(o: { dir: string; door: FrontDoor; postgres: EmbeddedPostgres; replicas: Readonly<Record<ServiceName, readonly Replica[]>>; natsPort: number; options: ClusterOptions }) {
    this.dir = o.dir;
    this.#door = o.door;
    this.url = o.door.url;
    this.#postgres = o.postgres;
    this.#replicas = o.replicas;
    this.#natsPort = o.natsPort;
    this.#o = { workers: o.options.workers ?? 2, timeScale: o.options.timeScale ?? 1, env: o.options.env ?? {} };
    this.ownerKey = o.options.ownerKey ?? OWNER_KEY;
    this.hasNats = isInstalled("nats-server");
  }

  /** Answers when every replica is ready. Errors: the output of the one that is not. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const dir = options.dir ?? mkdtempSync(join(tmpdir(), `millwright-system-${process.pid}-`));
    for (const name of ["repositories", "blobs", "nats"]) mkdirSync(join(dir, name), { recursive: true });
    const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
    const postgres = await EmbeddedPostgres.start({ dataDir: join(dir, "postgres"), maxConnections: 200, settings });
    const replicas = {} as Record<ServiceName, Replica[]>;
    for (const service of SERVICES) {
      await ensureDatabase(postgres.url("postgres"), `millwright_${service}`);
      replicas[service] = await Promise.all(Array.from({ length: options.replicas ?? 2 }, async () => ({ grpcPort: await freePort(), opsPort: await freePort(), port: await freePort() })));
    }
    const door = await FrontDoor.open(replicas.gateway.map(({ port }) => port));
    const cluster = new Cluster({ dir, door, postgres, replicas, natsPort: await freePort(), options });
    try {
      cluster.startNats();
      for (const service of SERVICES) for (const index of replicas[service].keys()) cluster.launch(service, index);
      await cluster.ready();
      cluster.#startWorkers();
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  /** The addresses at which a service answers RPCs. */
  rpcUrls(service: ServiceName): string[] {
    return this.#replicas[service].map(({ grpcPort }) => `http://127.0.0.1:${grpcPort}`);
  }

  opsUrls(service: ServiceName): string[] {
    return this.#replicas[service].map(({ opsPort }) => `http://127.0.0.1:${opsPort}`);
  }

  /** The end of what each replica wrote. */
  output(): string {
    return SERVICES.flatMap((service) => this.#replicas[service].map(({ program }, index) => `${service} ${index}:\n${program?.output().slice(-1_000)}`)).join("\n");
  }

  get natsUrl(): string {
    return `nats://127.0.0.1:${this.#natsPort}`;
  }

  /** Starts a replica that is not running. Does not wait for it. */
  launch(service: ServiceName, index: number): void {
    const replica = this.#replicas[service][index]!;
    replica.program = new Program(`${service}/src/main.ts`, { log: this.path(`${service}-${index}.out`), env: this.#environment(service, replica) });
  }

  /** SIGKILL to one replica. */
  async kill(service: ServiceName, index: number): Promise<void> {
    await this.#replicas[service][index]?.program?.kill();
  }

  /** Waits until every replica is ready. */
  async ready(): Promise<void> {
    const waiting = SERVICES.flatMap((service) => this.#replicas[service].map((replica, index) => ({ name: `${service} ${index}`, replica })));
    for (const { name, replica } of waiting) {
      for (const deadline = Date.now() + READY_TIMEOUT_MS; !(await isReady(replica)); await pause(POLL_MS)) {
        if (replica.program?.hasEnded !== false || Date.now() > deadline) throw new Error(`${name} is not ready:\n${replica.program?.output().slice(-4_000)}`);
      }
    }
  }

  startNats(): void {
    if (!this.hasNats) return;
    this.#nats = spawn("nats-server", ["--addr", "127.0.0.1", "--port", String(this.#natsPort), "--jetstream", "--store_dir", this.path("nats")], { stdio: "ignore" });
  }

  /** SIGKILL to nats-server, and its data away. */
  async wipeNats(): Promise<void> {
    await ended(this.#nats, "SIGKILL");
    rmSync(this.path("nats"), { recursive: true, force: true });
    mkdirSync(this.path("nats"));
  }

  /** Stops everything in order; may be called again. Answers the names of replicas that did not end by themselves with exit code 0. */
  async stop(): Promise<string[]> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    const all = SERVICES.flatMap((service) => this.#replicas[service].map(({ program }, index) => ({ name: `${service} ${index}`, program })));
    const stopped = await Promise.all(all.map(async ({ name, program }) => ({ name, isClean: (await program?.stop()) ?? true })));
    await this.#door.close();
    await ended(this.#nats, "SIGTERM");
    await this.#postgres.stop();
    return stopped.filter(({ isClean }) => !isClean).map(({ name }) => name);
  }

  /** Ends it and leaves nothing behind. */
  async remove(): Promise<void> {
    await this.stop();
    killAll(processesWith(this.dir).map(({ pid }) => pid));
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  #startWorkers(): void {
    const telemetry = Object.fromEntries(Object.entries(this.#o.env).filter(([name]) => name.startsWith("OTEL_")));
    this.#workers = Array.from({ length: this.#o.workers }, (_one, index) => {
      const dir = this.path(`worker-${index}`);
      const env = { MILLWRIGHT_URL: this.url, MILLWRIGHT_WORKER_KEY: WORKER_KEY, MILLWRIGHT_WORKER_ID: `worker-${index}`, MILLWRIGHT_WORKER_DIR: dir, MILLWRIGHT_WORKER_DRAIN: "1s", ...telemetry };
      return new Program("worker/src/main.ts", { log: this.path(`worker-${index}.out`), env });
    });
  }

  #environment(service: ServiceName, replica: Replica): Record<string, string> {
    const neighbours = SERVICES.filter((name) => name !== service).flatMap((name) => [
      [`${name.toUpperCase()}_URL`, this.rpcUrls(name).join(",")],
      [`${name.toUpperCase()}_JWKS_URL`, this.opsUrls(name).map((url) => `${url}/jwks.json`).join(",")],
    ]);
    return {
      ...Object.fromEntries(neighbours),
      DATABASE_URL: this.#postgres.url(`millwright_${service}`), DATABASE_POOL: "6",
      ...(this.hasNats && { NATS_URL: this.natsUrl }),
      GRPC_PORT: String(replica.grpcPort), OPS_PORT: String(replica.opsPort), PORT: String(replica.port),
      MILLWRIGHT_PUBLIC_URL: this.url, MASTER_KEY: this.#secrets["master"]!, SERVICE_KEY: this.#secrets[service]!, ...(!this.#o.env["MILLWRIGHT_BLOB_URL"] && { BLOB_DIR: this.path("blobs") }),
      MILLWRIGHT_BOOTSTRAP_API_KEY: this.ownerKey, MILLWRIGHT_WORKER_KEY: WORKER_KEY,
      MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.path("repositories"), MILLWRIGHT_TIME_SCALE: String(this.#o.timeScale),
      ...this.#o.env,
    };
  }
}

const isReady = ({ opsPort }: Replica): Promise<boolean> => fetch(`http://127.0.0.1:${opsPort}/readyz`).then(({ ok }) => ok, () => false);

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

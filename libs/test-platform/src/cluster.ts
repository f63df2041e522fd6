import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EmbeddedPostgres, ensureDatabase } from "@millwright/database";
import { OWNER_KEY, type Deployment, type DeploymentOptions } from "./deployment.ts";
import { newDirectory, removeDirectory } from "./directory.ts";
import { LoadBalancer } from "./load-balancer.ts";
import { Member } from "./member.ts";
import { Nats } from "./nats.ts";
import { steadyPort } from "./ports.ts";
import { killAll, processesWith } from "./processes.ts";
import { Relay } from "./relay.ts";

export const SERVICES = [
  "gateway",
  "orchestrator",
  "factories",
  "scheduler",
  "scoring",
  "metrics",
  "webhook-ingress",
] as const;
export type ServiceName = (typeof SERVICES)[number];

export type ClusterOptions = DeploymentOptions & {
  /** Number of replicas of each service, or of the named services; default 2. */
  replicas?: number | Partial<Readonly<Record<ServiceName, number>>>;
  /** Connects each worker through a relay of its own, whose connections can be disturbed. */
  hasRelays?: boolean;
  /** Directory of all files; default: a new directory. */
  dir?: string;
  ownerKey?: string;
  /** Runs PostgreSQL with its default settings, including fsync. By default fsync is off for speed. */
  isDurable?: boolean;
  /** Runs the compiled output, as the images do, instead of the sources. It must exist (`npm run typecheck`). */
  isCompiled?: boolean;
  /** PEM files; if set, the services use TLS between each other. */
  tls?: { readonly caFile: string; readonly certFile: string; readonly keyFile: string };
};

const REPLICAS = 2;
const workersOf = ({ workers = 2 }: ClusterOptions): number => workers;

type Ports = { readonly grpc: number; readonly ops: number; readonly http: number };

/** Lets the services and workers connect to loopback, where the fake model providers and code hosts run. */
const INTERNAL = { MILLWRIGHT_ALLOWED_INTERNAL_HOSTS: "localhost,127.0.0.0/8,::1" };

/** Settings that workers receive in addition to the services. */
const WORKERS_TOO = /^OTEL_|^MILLWRIGHT_HARNESS_|^MILLWRIGHT_PARKED_WORKSPACES$/;

/** Commits survive if PostgreSQL is killed, as suites that kill everything require, but not if the machine is. */
const FAST: Record<string, string> = { fsync: "off", full_page_writes: "off" };

/**
 * The platform as separate processes on loopback: replicas of each service behind a load balancer, workers (default
 * two), nats-server (if installed) and an embedded PostgreSQL.
 */
export class Cluster implements Deployment {
  readonly dir: string;
  readonly url: string;
  readonly timeScale: number;
  readonly hasChaos = false;
  readonly ownerKey: string;
  /** Undefined if nats-server is not installed. */
  readonly nats: Nats | undefined;
  readonly #options: ClusterOptions;
  readonly #gatewayBalancer: LoadBalancer;
  readonly #webhookBalancer: LoadBalancer;
  readonly #ports: Readonly<Record<ServiceName, readonly Ports[]>>;
  readonly #databasePort: number;
  readonly #secrets = Object.fromEntries(
    ["master", ...SERVICES].map((name) => [name, randomBytes(32).toString("base64")]),
  );
  readonly #workerKey = `mww_${randomBytes(32).toString("base64url")}`;
  readonly #relays: readonly Relay[];
  /** Changes of the services' settings since the start. */
  #changes: Readonly<Record<string, string>> = {};
  #postgres: EmbeddedPostgres | undefined;
  #services: readonly Member[] = [];
  #workers: readonly Member[] = [];

  private constructor(o: {
    dir: string;
    gatewayBalancer: LoadBalancer;
    webhookBalancer: LoadBalancer;
    ports: Readonly<Record<ServiceName, readonly Ports[]>>;
    databasePort: number;
    nats: Nats | undefined;
    relays: readonly Relay[];
    options: ClusterOptions;
  }) {
    this.dir = o.dir;
    this.url = o.gatewayBalancer.url;
    this.timeScale = o.options.timeScale ?? 1;
    this.ownerKey = o.options.ownerKey ?? OWNER_KEY;
    this.nats = o.nats;
    this.#options = o.options;
    this.#gatewayBalancer = o.gatewayBalancer;
    this.#webhookBalancer = o.webhookBalancer;
    this.#ports = o.ports;
    this.#relays = o.relays;
    this.#databasePort = o.databasePort;
  }

  /** Starts a cluster and resolves when all processes are ready. Throws with the output of a process that is not. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const dir = options.dir ?? (await newDirectory());
    const ports = {} as Record<ServiceName, Ports[]>;
    const { replicas = REPLICAS } = options;
    for (const service of SERVICES)
      ports[service] = await Promise.all(
        Array.from({ length: typeof replicas === "number" ? replicas : (replicas[service] ?? REPLICAS) }, somePorts),
      );
    const nats = await Nats.in(join(dir, "data", "nats"));
    const gatewayBalancer = await LoadBalancer.open(ports.gateway.map(({ http }) => http));
    const webhookBalancer = await LoadBalancer.open(ports["webhook-ingress"].map(({ http }) => http));
    const relays = await Promise.all(
      Array.from({ length: options.hasRelays ? workersOf(options) : 0 }, () => Relay.to(gatewayBalancer.url)),
    );
    const cluster = new Cluster({
      dir,
      gatewayBalancer,
      webhookBalancer,
      ports,
      databasePort: await steadyPort(),
      nats,
      relays,
      options,
    });
    try {
      await cluster.start();
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  /** Replicas of the services, then the workers. */
  get members(): readonly Member[] {
    return [...this.#services, ...this.#workers];
  }

  member(name: `${ServiceName | "worker"}-${number}`): Member {
    const found = this.members.find((member) => member.name === name);
    if (!found) throw new Error(`There is no ${name}.`);
    return found;
  }

  /** Returns the relay between a worker and the platform. */
  relay(worker: number): Relay {
    const found = this.#relays[worker];
    if (!found) throw new Error(`There is no relay before worker-${worker}.`);
    return found;
  }

  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  /** The platform's master key at the start, in base64. */
  get masterKey(): string {
    return this.#secrets["master"]!;
  }

  /**
   * Changes settings of every service while it serves: restarts the first replica of each service, then the second, and
   * so on. Calls `check` after each. Throws if a process does not become ready again.
   */
  async reconfigure(settings: Readonly<Record<string, string>>, check: () => Promise<void>): Promise<void> {
    this.#changes = { ...this.#changes, ...settings };
    const replicas = Map.groupBy(this.#services, ({ name }) => name.slice(name.lastIndexOf("-")));
    for (const members of replicas.values()) {
      await Promise.all(members.map((member) => member.stop()));
      for (const member of members) member.launch();
      for (const member of members) await member.ready();
      await check();
    }
  }

  /** Returns the RPC addresses of a service's replicas. */
  rpcUrls(service: ServiceName): string[] {
    return this.#ports[service].map(({ grpc }) => `${this.#options.tls ? "https" : "http"}://127.0.0.1:${grpc}`);
  }

  opsUrls(service: ServiceName): string[] {
    return this.#ports[service].map(({ ops }) => `http://127.0.0.1:${ops}`);
  }

  /** Returns the addresses of the gateways, without the load balancer. */
  gatewayUrls(): string[] {
    return this.#ports.gateway.map(({ http }) => `http://127.0.0.1:${http}`);
  }

  /** Returns the addresses of the webhook ingresses, without their load balancer. */
  ingressUrls(): string[] {
    return this.#ports["webhook-ingress"].map(({ http }) => `http://127.0.0.1:${http}`);
  }

  /** Returns the URL of a service's database. */
  databaseUrl(service: ServiceName): string {
    return this.serverUrl(`millwright_${service}`);
  }

  /** Returns the URL of a database of the PostgreSQL server. */
  serverUrl(database: string): string {
    return this.#postgres!.url(database);
  }

  /** Returns the failures that processes have logged, and all output that is not a log record. */
  errors(): string[] {
    return this.members.flatMap(({ name }) =>
      readFileSync(this.path("logs", name), "utf8")
        .split("\n")
        .filter(isFailure)
        .map((line) => `${name}: ${line}`),
    );
  }

  output(): string {
    return this.members.map((member) => `${member.name}:\n${member.output().slice(-1_000)}`).join("\n");
  }

  async start(): Promise<void> {
    for (const name of ["repositories", "data/blobs", "data/workers", "logs"])
      mkdirSync(this.path(name), { recursive: true });
    const [postgres] = await Promise.all([
      EmbeddedPostgres.start({
        dataDir: this.path("data", "postgres"),
        port: this.#databasePort,
        maxConnections: 200,
        settings: this.#options.isDurable ? {} : FAST,
      }),
      this.nats?.start(),
    ]);
    this.#postgres = postgres;
    for (const service of SERVICES) await ensureDatabase(postgres.url("postgres"), `millwright_${service}`);
    this.#services = SERVICES.flatMap((service) =>
      this.#ports[service].map((ports, index) => this.#replica(service, index, ports)),
    );
    this.#workers = Array.from({ length: workersOf(this.#options) }, (_one, index) => this.#worker(index));
    for (const members of [this.#services, this.#workers]) {
      for (const member of members) member.launch();
      for (const member of members) await member.ready();
    }
  }

  async killEverything(): Promise<void> {
    const killed = Promise.all([this.nats?.end("SIGKILL"), ...this.members.map((member) => member.kill())]);
    killAll(processesWith(this.dir).map(({ pid }) => pid));
    await killed;
  }

  /** Stops all processes. Returns the names of those that did not exit in time with code 0. */
  async stop(): Promise<string[]> {
    const failedMembers: string[] = [];
    for (const members of [this.#workers, this.#services]) {
      await Promise.all(members.map(async (member) => (await member.stop()) || failedMembers.push(member.name)));
    }
    await this.nats?.end();
    await this.#postgres?.stop();
    return failedMembers;
  }

  async remove(): Promise<void> {
    try {
      await this.stop();
      await Promise.all(this.#relays.map((relay) => relay.close()));
      await this.#gatewayBalancer.close();
      await this.#webhookBalancer.close();
    } finally {
      await removeDirectory(this.dir);
    }
  }

  #replica(service: ServiceName, index: number, ports: Ports): Member {
    const name = `${service}-${index}`;
    const isReady = () =>
      fetch(`http://127.0.0.1:${ports.ops}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    return new Member({
      isCompiled: this.#options.isCompiled,
      name,
      main: `${service}/src/main.ts`,
      log: this.path("logs", name),
      env: () => this.#environment(service, ports),
      isReady,
    });
  }

  #worker(index: number): Member {
    const name = `worker-${index}`;
    const settings = Object.fromEntries(
      Object.entries(this.#options.env ?? {}).filter(([key]) => WORKERS_TOO.test(key)),
    );
    const env = {
      MILLWRIGHT_SANDBOX: "optional",
      MILLWRIGHT_SANDBOX_START_TIMEOUT: "2m", // sandboxes of many workers start at once, on slow machines, too
      ...settings,
      MILLWRIGHT_URL: this.#relays[index]?.url ?? this.url,
      MILLWRIGHT_WORKER_KEY: this.#workerKey,
      MILLWRIGHT_WORKER_ID: name,
      MILLWRIGHT_WORKER_SLOTS: String(this.#options.slots ?? 4),
      MILLWRIGHT_WORKER_DIR: this.path("data", "workers", name),
      MILLWRIGHT_WORKER_DRAIN: "1s",
      MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.path("repositories"),
      ...INTERNAL,
    };
    return new Member({
      isCompiled: this.#options.isCompiled,
      name,
      main: "worker/src/main.ts",
      log: this.path("logs", name),
      env: () => env,
      isReady: async (written) => written.includes('"registered"'),
    });
  }

  #environment(service: ServiceName, ports: Ports): Record<string, string> {
    const { tls } = this.#options;
    const upstreams = SERVICES.filter((name) => name !== service).flatMap((name) => [
      [`${variable(name)}_URL`, this.rpcUrls(name).join(",")],
      [
        `${variable(name)}_JWKS_URL`,
        this.opsUrls(name)
          .map((url) => `${url}/jwks.json`)
          .join(","),
      ],
    ]);
    return {
      ...Object.fromEntries(upstreams),
      DATABASE_URL: this.databaseUrl(service),
      DATABASE_POOL: "6",
      ...(this.nats && { NATS_URL: this.nats.url }),
      ...(tls && { TLS_CA_FILE: tls.caFile, TLS_CERT_FILE: tls.certFile, TLS_KEY_FILE: tls.keyFile }),
      GRPC_PORT: String(ports.grpc),
      OPS_PORT: String(ports.ops),
      PORT: String(ports.http),
      ...(!this.#options.env?.["MILLWRIGHT_BLOB_URL"] && { BLOB_DIR: this.path("data", "blobs") }),
      MILLWRIGHT_PUBLIC_URL: this.url,
      MILLWRIGHT_WEBHOOK_URL: this.#webhookBalancer.url,
      MASTER_KEY: this.#secrets["master"]!,
      SERVICE_KEY: this.#secrets[service]!,
      MILLWRIGHT_BOOTSTRAP_API_KEY: this.ownerKey,
      MILLWRIGHT_WORKER_KEY: this.#workerKey,
      MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.path("repositories"),
      ...INTERNAL,
      MILLWRIGHT_TIME_SCALE: String(this.timeScale),
      ...this.#options.env,
      ...this.#changes,
    };
  }
}

/** Reasons of errors that are not failures: an upstream service was unavailable for a moment and the caller retries. */
const PASSING = new Set(["service_unavailable", "deadline_exceeded", "call_cancelled"]);

function isFailure(line: string): boolean {
  if (line === "") return false;
  try {
    const { level, reason } = JSON.parse(line) as { level?: string; reason?: string };
    return level === "error" && !PASSING.has(reason ?? "");
  } catch {
    return true;
  }
}

/** Returns the prefix of a service's environment variables. */
const variable = (service: ServiceName): string => service.toUpperCase().replaceAll("-", "_");

const somePorts = async (): Promise<Ports> => ({
  grpc: await steadyPort(),
  ops: await steadyPort(),
  http: await steadyPort(),
});

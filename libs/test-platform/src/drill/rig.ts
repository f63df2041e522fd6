import { setTimeout as pause } from "node:timers/promises";
import { Database } from "@millwright/database";
import { Cluster, type ServiceName } from "../cluster.ts";
import { bareRepository } from "../git.ts";
import type { Member } from "../member.ts";
import { RetryingClient } from "./client.ts";
import { CAST, partsOf, TIME_SCALE, type Fault } from "./schedule.ts";

const OURS = "drill";
const WATCH_MS = 500;
/** Slots of each worker. */
export const SLOTS = 4;

const { worker: _workers, ...SERVICES_OF_CAST } = CAST;

type ProcessFault = Exclude<Fault, { kind: "backends" | "crash" }>;

export type RigOptions = {
  /** Longest time in which a request may get no response, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly timeScale?: number;
  readonly replicas?: Readonly<Record<ServiceName, number>>;
  readonly workers?: number;
  /** Runs PostgreSQL with fsync, so that commits survive a crash. */
  readonly isDurable?: boolean;
};

/**
 * The platform of a drill: separate processes, a relay in front of each worker, and access to the orchestrator's
 * database.
 */
export class Rig {
  readonly cluster: Cluster;
  readonly client: RetryingClient;
  /** The orchestrator's database. Queries only read. */
  readonly database: Database;
  /** The database of metrics. Queries only read. */
  readonly metrics: Database;
  readonly factoryUid: string;
  /** Processes that ended without a fault that ended them. */
  readonly unexpectedExits: string[] = [];
  readonly #busy = new Set<string>();
  #isClosed = false;
  #watching: Promise<void>;

  private constructor(cluster: Cluster, client: RetryingClient, factoryUid: string) {
    this.cluster = cluster;
    this.client = client;
    this.factoryUid = factoryUid;
    this.database = Database.open(cluster.databaseUrl("orchestrator"), { max: 4, applicationName: OURS });
    this.metrics = Database.open(cluster.databaseUrl("metrics"), { max: 1, applicationName: OURS });
    this.#watching = this.#watch();
  }

  /** Resolves when everything is ready. */
  static async start({
    stallTimeoutMs,
    timeScale = TIME_SCALE,
    replicas = SERVICES_OF_CAST,
    workers = CAST.worker,
    isDurable = false,
  }: RigOptions): Promise<Rig> {
    const cluster = await Cluster.start({ timeScale, replicas, workers, slots: SLOTS, hasRelays: true, isDurable });
    try {
      const client = new RetryingClient(cluster.url, cluster.ownerKey, stallTimeoutMs);
      return new Rig(cluster, client, await createFactory(cluster, client));
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /**
   * Inflicts a fault, waits for its duration and reverts it. Returns false if the target is disturbed already or there
   * is nothing to disturb.
   */
  async inflict(fault: Fault): Promise<boolean> {
    const { kind, target } = fault;
    if (kind === "backends") return this.#endBackends(target as ServiceName, fault.share);
    if (kind === "crash") return this.#crashDatabase(target as ServiceName);
    const done = await Promise.all(
      partsOf(target).map((part) => this.#inflictOn({ ...fault, target: part } as ProcessFault)),
    );
    return done.includes(true);
  }

  async #inflictOn(fault: ProcessFault): Promise<boolean> {
    const place = fault.kind === "cut" ? `relay of ${fault.target}` : fault.target;
    if (this.#busy.has(place) || (fault.kind === "wipe" && !this.cluster.nats)) return false;
    this.#busy.add(place);
    try {
      await this.#fault(fault);
    } finally {
      this.#busy.delete(place);
    }
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watching;
    await this.database.close();
    await this.metrics.close();
    await this.cluster.remove();
  }

  async #fault(fault: ProcessFault): Promise<void> {
    const { kind, target, forMs } = fault;
    switch (kind) {
      case "cut": {
        const relay = this.cluster.relay(Number(target.split("-")[1]));
        relay.cut(fault.network);
        await pause(forMs);
        return relay.repair();
      }
      case "freeze": {
        const member = this.#member(target);
        member.signal("SIGSTOP");
        await pause(forMs);
        return member.signal("SIGCONT");
      }
      case "kill":
      case "stop": {
        const member = this.#member(target);
        await (kind === "kill" ? member.kill() : member.stop());
        await pause(forMs);
        member.launch();
        return member.ready();
      }
      case "wipe": {
        await this.cluster.nats?.wipe();
        await pause(forMs);
        return this.cluster.nats?.start();
      }
      default:
        return kind satisfies never;
    }
  }

  async #endBackends(service: ServiceName, share: number): Promise<boolean> {
    const sql =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name <> $2 AND random() < $3";
    return (await this.database.sql.query(sql, [`millwright_${service}`, OURS, share])).rowCount > 0;
  }

  /**
   * Kills a backend with SIGKILL. PostgreSQL then terminates all other backends, because shared memory may be
   * corrupted, and recovers from its write-ahead log.
   */
  async #crashDatabase(service: ServiceName): Promise<boolean> {
    const findPid = async (condition: string, params: readonly unknown[] = []): Promise<number | undefined> =>
      (
        await this.database.sql.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity WHERE ${condition} LIMIT 1`,
          params,
        )
      ).rows[0]?.pid;
    // Its process id differs after each restart.
    const checkpointer = (): Promise<number | undefined> => findPid("backend_type = 'checkpointer'");
    const before = await checkpointer();
    const victim = await findPid("datname = $1 AND application_name <> $2", [`millwright_${service}`, OURS]);
    if (victim === undefined) return false;
    process.kill(victim, "SIGKILL");
    for (
      let now: number | undefined = before;
      now === undefined || now === before;
      now = await checkpointer().catch(() => undefined)
    )
      await pause(WATCH_MS / 10);
    return true;
  }

  #member(name: string): Member {
    return this.cluster.member(name as Parameters<Cluster["member"]>[0]);
  }

  /** Records and restarts processes that ended without a fault. */
  async #watch(): Promise<void> {
    for (; !this.#isClosed; await pause(WATCH_MS)) {
      for (const member of this.cluster.members) {
        if (member.isRunning || this.#busy.has(member.name)) continue;
        this.unexpectedExits.push(`${member.name} ended by itself: ${member.output().slice(-1_000)}`);
        member.launch();
      }
    }
  }
}

/** Creates a repository and a factory on it, whose foreman performs the script in its prompt. */
async function createFactory(cluster: Cluster, client: RetryingClient): Promise<string> {
  const root = cluster.path("repositories");
  bareRepository(root, "acme", "works", { "README.md": "# Works\n" });
  const { teams } = await client.request("GET", "/whoami");
  await client.request("PATCH", `/team/${teams[0].uid}`, { concurrency_limit: 1_000 });
  await client.request("POST", `/team/${teams[0].uid}/code-hosts`, { name: "local", kind: "local", root });
  return defineFactory(client, "Works");
}

/** Creates a factory that has only a foreman, on the repository of the rig, and applies its definition. */
export async function defineFactory(client: RetryingClient, name: string): Promise<string> {
  const { uid } = await client.request("POST", "/factory", { name });
  const files = [
    {
      path: "factory.yaml",
      content: `schemaVersion: v1alpha1\nname: ${name}\nrepositories:\n  - owner: acme\n    name: works\nagentDefaults:\n  model: auto\n`,
    },
    {
      path: "agents/foreman/agent.md",
      content: "---\ndescription: Receives work.\nagentType: FOREMAN\n---\n\nYou are the foreman.\n",
    },
  ];
  await client.request("PUT", `/factory/${uid}/source`, { files });
  await client.request("POST", `/factory/${uid}/source/apply`);
  return uid;
}

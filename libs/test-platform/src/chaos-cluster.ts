import { setTimeout as pause } from "node:timers/promises";
import { Database } from "@millwright/database";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import type { Deployment } from "./deployment.ts";
import { ProcessKiller, type KillTarget } from "./process-killer.ts";
import type { Member } from "./member.ts";

/** What is killed: replicas and workers, services only, or nats-server together with its data. */
export type ChaosScope = "processes" | "services" | "nats";

const POLL_MS = 50;

/** A cluster whose processes are killed repeatedly while it is used. */
export class ChaosCluster implements Deployment {
  readonly hasChaos = true;
  readonly cluster: Cluster;
  readonly #killer: ProcessKiller;

  private constructor(cluster: Cluster, scope: ChaosScope) {
    this.cluster = cluster;
    this.#killer = new ProcessKiller(killTargetsOf(cluster, scope));
  }

  /** Starts a cluster and then begins to kill its processes. Resolves when the cluster is ready. */
  static async start(scope: ChaosScope, options: ClusterOptions): Promise<ChaosCluster> {
    const under = new ChaosCluster(await Cluster.start(options), scope);
    under.#killer.start();
    return under;
  }

  get url(): string {
    return this.cluster.url;
  }

  get dir(): string {
    return this.cluster.dir;
  }

  get timeScale(): number {
    return this.cluster.timeScale;
  }

  /** Names of the killed processes, in order. */
  get kills(): readonly string[] {
    return this.#killer.kills;
  }

  path(...names: string[]): string {
    return this.cluster.path(...names);
  }

  output(): string {
    return `Killed: ${this.kills.join(", ")}\n${this.cluster.output()}`;
  }

  /** Stops the kills. Resolves when all processes are back. */
  async stopKilling(): Promise<void> {
    await this.#killer.stop();
  }

  async killEverything(): Promise<void> {
    const out = this.#killer.abandon();
    await this.cluster.killEverything();
    await out;
    await this.cluster.killEverything(); // Kills processes that were being started by the first call.
  }

  async start(): Promise<void> {
    await this.cluster.start();
    this.#killer.start();
  }

  async stop(): Promise<string[]> {
    await this.#killer.stop();
    return this.cluster.stop();
  }

  async remove(): Promise<void> {
    try {
      await this.#killer.stop();
    } finally {
      await this.cluster.remove();
    }
  }
}

function killTargetsOf(cluster: Cluster, scope: ChaosScope): KillTarget[] {
  if (scope === "nats") return [natsOf(cluster)];
  return cluster.members
    .filter(({ name }) => scope === "processes" || !isWorker(name))
    .map((member) => processOf(cluster, member));
}

const isWorker = (name: string): boolean => name.startsWith("worker-");

/** Resolves the member by name on each use, because a restarted cluster has new members. */
function processOf(cluster: Cluster, { name }: Member): KillTarget {
  const member = () => cluster.member(name as Parameters<Cluster["member"]>[0]);
  return {
    name,
    isSpared: async () => isWorker(name) && (await ownsRunWithLosses(cluster, name)),
    kill: () => member().kill(),
    async restart() {
      member().launch();
      await member().ready();
    },
  };
}

/**
 * Returns whether a worker executes a run that has lost a worker before. The platform fails a run after several losses
 * (`RUN_LOSSES_MAX`), but these suites expect every run to succeed.
 */
const ownsRunWithLosses = (cluster: Cluster, worker: string): Promise<boolean> =>
  inOrchestrator(cluster, async ({ sql }) => {
    const { rows } = await sql.query(
      `SELECT 1 FROM leases l JOIN worker_sessions s ON s.uid = l.session_uid JOIN executions e ON e.id = l.execution_id
        WHERE s.worker_host = $1 AND e.setup_losses + e.run_losses > 0 LIMIT 1`,
      [worker],
    );
    return rows.length > 0;
  });

/**
 * Leaves nats-server down until at least one event is written that it would have announced, and after the restart up
 * until at least one more event is written.
 */
function natsOf(cluster: Cluster): KillTarget {
  const head = () =>
    inOrchestrator(
      cluster,
      async ({ sql }) => (await sql.query<{ head: number }>("SELECT head FROM stream.event_meta")).rows[0]!.head,
    );
  const growth = async (isGoingOut: () => boolean) => {
    for (const before = await head(); !isGoingOut() && (await head()) === before;) await pause(POLL_MS);
  };
  return {
    name: "nats-server",
    kill: async () => cluster.nats?.wipe(),
    async restart(killer) {
      await growth(() => !killer.isKilling);
      await cluster.nats?.start();
      await growth(() => !killer.isKilling);
    },
  };
}

async function inOrchestrator<T>(cluster: Cluster, f: (database: Database) => Promise<T>): Promise<T> {
  const database = Database.open(cluster.databaseUrl("orchestrator"), { max: 1, applicationName: "system tests" });
  try {
    return await f(database);
  } finally {
    await database.close();
  }
}

import { mkdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  CLUSTER_ROLE,
  ensureCluster,
  ensurePassword,
  failedOnSocket,
  lastLines,
  refuseOtherMajor,
  socketPath,
  spawnServer,
} from "./cluster.ts";
import { freePort } from "./free-port.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { isPostmasterOf, readPostmaster, servesDirectory, type Postmaster } from "./postmaster.ts";

export type EmbeddedPostgresOptions = {
  /** Directory of the cluster, its password, its log and its Unix socket; created with mode 0700. */
  dataDir: string;
  /** Loopback port; 0 or absent uses a free port at each start. */
  port?: number;
  /** Default 200. */
  maxConnections?: number;
  /** The start fails without a Unix socket: for a restart whose callers use the socket. Default: false. */
  requiresSocket?: boolean;
  /** Further server settings, such as `{ fsync: "off" }` for tests. */
  settings?: Record<string, string>;
};

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 15_000;
const SPAWNS_MAX = 5;
const POLL_MS = 25;
const LOOPBACK = "127.0.0.1";

/**
 * A private PostgreSQL server on the loopback address and a Unix socket, for standalone use and tests. There is no
 * socket if its path would be too long or the file system has none.
 *
 * The server is its own session: neither a signal to our process group nor our exit ends it, and the next `start` with
 * the same directory adopts it. Root runs it in a user namespace, since PostgreSQL refuses to run as root.
 */
export class EmbeddedPostgres {
  readonly port: number;
  readonly pid: number;
  /** Whether the server was already running. */
  readonly isAdopted: boolean;
  readonly #password: string;
  readonly #pgData: string;
  /** Empty if the server has no Unix socket. */
  readonly #socketDir: string;

  private constructor(o: Omit<Postmaster, "status"> & { isAdopted: boolean; password: string; pgData: string }) {
    this.port = o.port;
    this.pid = o.pid;
    this.#socketDir = o.socketDir;
    this.isAdopted = o.isAdopted;
    this.#password = o.password;
    this.#pgData = o.pgData;
  }

  /** Starts or adopts the server of `dataDir` and returns once it accepts connections. Errors name the log file. */
  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
    const home = await realpath(options.dataDir);
    const binaries = await postgresBinaries();
    const password = await ensurePassword(home);
    const pgData = await ensureCluster(binaries, home);
    await refuseOtherMajor(binaries, pgData);

    const deadline = Date.now() + START_TIMEOUT_MS;
    let server: Awaited<ReturnType<typeof spawnServer>> | undefined;
    let hasSocket = true;
    for (let spawns = 0; Date.now() < deadline; await pause(POLL_MS)) {
      const found = await readPostmaster(pgData);
      const isThisCluster = found !== undefined && isPostmasterOf(found.pid, pgData);
      if (isThisCluster && found.status === "ready") {
        const isServedOn = (host: string): Promise<boolean> =>
          servesDirectory(urlOf(host, found.port, password, "postgres"), pgData);
        if (await isServedOn(LOOPBACK)) {
          // The socket's file may have been deleted since the server started.
          const socketDir = found.socketDir && (await isServedOn(found.socketDir)) ? found.socketDir : "";
          return new EmbeddedPostgres({ ...found, socketDir, isAdopted: found.pid !== server?.pid, password, pgData });
        }
      }
      // Wait for a live server that is starting or stopping. A lock file without a live owner is stale.
      if (isThisCluster || (server && !server.hasExited)) continue;
      // An exit can mean that a port was just taken, an old backend still has the memory, or a concurrent start was
      // faster.
      if (++spawns > SPAWNS_MAX) break;
      // Not every file system has sockets.
      if (server && !options.requiresSocket && (await failedOnSocket(home))) hasSocket = false;
      // The server that this start has spawned removes its own files.
      if (found && found.pid !== server?.pid) {
        const socket = socketPath(home, found.port);
        for (const path of [socket, `${socket}.lock`, join(pgData, "postmaster.pid")]) await rm(path, { force: true });
      }
      server = await spawnServer(binaries, pgData, { ...options, hasSocket, port: options.port || (await freePort()) });
    }
    throw new Error(`PostgreSQL did not start; see ${join(home, "postgres.log")}: ${await lastLines(home)}`);
  }

  /** Stops the server of a directory whose user has died, if one is running. */
  static async stopLeftover(dataDir: string): Promise<void> {
    const pgData = join(await realpath(dataDir), "cluster");
    const found = await readPostmaster(pgData);
    if (found && isPostmasterOf(found.pid, pgData))
      await new EmbeddedPostgres({ ...found, isAdopted: true, password: "", pgData }).stop();
  }

  /** Returns whether the server process is alive. */
  get isAlive(): boolean {
    return isPostmasterOf(this.pid, this.#pgData);
  }

  /** Whether `localUrl` uses the Unix socket. */
  get hasSocket(): boolean {
    return this.#socketDir !== "";
  }

  /** Returns the connection URL of a database of this server, over TCP. */
  url(database: string): string {
    return urlOf(LOOPBACK, this.port, this.#password, database);
  }

  /**
   * Returns the connection URL of a database over the server's Unix socket, which takes less processor time than TCP,
   * or over TCP if the server has none.
   */
  localUrl(database: string): string {
    return urlOf(this.#socketDir || LOOPBACK, this.port, this.#password, database);
  }

  /** Ends all sessions and the server within 15 s. Throws if it is still running after two requests to stop. */
  async stop(): Promise<void> {
    for (const signal of ["SIGINT", "SIGQUIT"] as const) {
      if (!this.isAlive) return;
      process.kill(this.pid, signal);
      const deadline = Date.now() + STOP_TIMEOUT_MS;
      while (Date.now() < deadline && this.isAlive) await pause(POLL_MS);
    }
    if (this.isAlive) throw new Error(`PostgreSQL (process ${this.pid}) does not stop.`);
  }
}

/** `host` is an address, or the directory of a Unix socket. */
const urlOf = (host: string, port: number, password: string, database: string): string =>
  `postgresql://${CLUSTER_ROLE}:${password}@${encodeURIComponent(host)}:${port}/${encodeURIComponent(database)}`;

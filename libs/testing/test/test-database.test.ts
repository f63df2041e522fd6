import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { domainError, eventually, needs, natsServer, testDatabase } from "@millwright/testing";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "migrations-"));
  await mkdir(join(dir, "0001_init"));
  await writeFile(
    join(dir, "0001_init", "migration.sql"),
    "CREATE TABLE things (n int PRIMARY KEY); INSERT INTO things VALUES (1);",
  );
});
afterAll(() => rm(dir, { recursive: true }));

test("each database is migrated and separate", async () => {
  const [a, b] = await Promise.all([testDatabase(dir), testDatabase(dir)]);
  await a.database.sql.query("INSERT INTO things VALUES (2)");
  const count = async (t: typeof a) => (await t.database.sql.query("SELECT * FROM things")).rowCount;
  expect([await count(a), await count(b)]).toEqual([2, 1]);
  await Promise.all([a.close(), b.close()]);
});

test("eventually throws the last error at its timeout", async () => {
  let n = 0;
  await expect(eventually(() => Promise.reject(new Error(`try ${++n}`)), { timeoutMs: 30 })).rejects.toThrow(/try \d/);
  expect(await eventually(() => ++n > 5 && "value")).toBe("value");
});

test("a domain error is matched by its fields", async () => {
  const fail = () => {
    throw new DomainError({ kind: "conflict", reason: "run_pending", message: "text" });
  };
  expect(fail).toThrow(domainError({ reason: "run_pending" }));
  expect(() => expect(fail).toThrow(domainError({ reason: "other" }))).toThrow("reason");
  await expect(Promise.resolve().then(fail)).rejects.toThrow(domainError({ kind: "conflict" }));
});

needs("nats-server", "a NATS server starts, stops and starts again", async () => {
  const nats = await natsServer();
  await nats.stop({ wipe: true });
  await nats.start();
  await nats.close();
});

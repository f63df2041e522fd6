import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { readConfig } from "@millwright/config";
import { readSecrets, readTls } from "./secrets.ts";
import { serviceSettings } from "./settings.ts";

const dir = mkdtempSync(join(tmpdir(), "millwright-secrets-"));
afterAll(() => rmSync(dir, { recursive: true }));

const key = Buffer.alloc(32, 7).toString("base64");
const settings = (env: Record<string, string>) =>
  readConfig({ DATABASE_URL: "postgres://h/db", MILLWRIGHT_PUBLIC_URL: "http://mill.test", ...env }, serviceSettings);

test("keys come from the environment or from files that only their owner can read", () => {
  const file = join(dir, "key");
  writeFileSync(file, key, { mode: 0o600 });
  const { masterKey, serviceKey } = readSecrets(settings({ MASTER_KEY: key, SERVICE_KEY_FILE: file }));
  expect([masterKey, serviceKey]).toEqual([new Uint8Array(32).fill(7), new Uint8Array(32).fill(7)]);
  chmodSync(file, 0o644);
  expect(() => readSecrets(settings({ MASTER_KEY: key, SERVICE_KEY_FILE: file }))).toThrow("mode 0600");
});

test.each([
  [{}, "Set MASTER_KEY or MASTER_KEY_FILE"],
  [{ MASTER_KEY: key, MASTER_KEY_FILE: "f" }, "not both"],
  [{ MASTER_KEY: "hunter2" }, "MASTER_KEY does not contain 32 bytes"],
  [{ MASTER_KEY: key, SERVICE_KEY_FILE: join(dir, "absent") }, "does not exist"],
])("%j is rejected without its value in the error", (env, message) => {
  expect(() => readSecrets(settings(env))).toThrow(message);
  expect(() => readSecrets(settings(env))).not.toThrow(/hunter2/);
});

test("a certificate requires its key", () => {
  const file = join(dir, "cert");
  writeFileSync(file, "PEM");
  expect(() => readTls(settings({ TLS_CERT_FILE: file }))).toThrow("or neither");
  expect(readTls(settings({ TLS_CERT_FILE: file, TLS_KEY_FILE: file, TLS_CA_FILE: file }))).toEqual({
    server: { cert: "PEM", key: "PEM" },
    ca: "PEM",
  });
  expect(readTls(settings({}))).toEqual({});
});

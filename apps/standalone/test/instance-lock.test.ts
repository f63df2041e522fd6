import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { lockDataDirectory } from "../src/instance-lock.ts";

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), "lock-"))));
afterEach(() => rmSync(dir, { recursive: true }));

test("can be locked again after it was unlocked", () => {
  lockDataDirectory(dir)();
  expect(existsSync(join(dir, "standalone.pid"))).toBe(false);
  lockDataDirectory(dir);
});

test("a running platform keeps the lock", async () => {
  const other = spawn(process.execPath, ["-e", "console.log('up'); setInterval(() => {}, 1000)", "standalone"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(other.stdout, "data");
  writeFileSync(join(dir, "standalone.pid"), String(other.pid));
  expect(() => lockDataDirectory(dir)).toThrow(`process ${other.pid}`);
  other.kill("SIGKILL");
  await once(other, "exit");
  lockDataDirectory(dir);
});

test("a reused pid does not keep the lock", async () => {
  const other = spawn("sleep", ["60"]);
  await once(other, "spawn");
  writeFileSync(join(dir, "standalone.pid"), String(other.pid));
  expect(() => lockDataDirectory(dir)).not.toThrow();
  other.kill("SIGKILL");
});

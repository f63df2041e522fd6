import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { takeDirectory } from "../src/instance-lock.ts";

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), "lock-"))));
afterEach(() => rmSync(dir, { recursive: true }));

test("a released data directory can be locked again", () => {
  takeDirectory(dir)();
  expect(existsSync(join(dir, "standalone.pid"))).toBe(false);
  takeDirectory(dir);
});

test("a data directory is locked while its platform runs", async () => {
  const other = spawn(process.execPath, ["-e", "console.log('up'); setInterval(() => {}, 1000)", "standalone"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(other.stdout, "data");
  writeFileSync(join(dir, "standalone.pid"), String(other.pid));
  expect(() => takeDirectory(dir)).toThrow(`process ${other.pid}`);
  other.kill("SIGKILL");
  await once(other, "exit");
  takeDirectory(dir);
});

test("a data directory is not locked by a process id that another program reuses", async () => {
  const other = spawn("sleep", ["60"]);
  await once(other, "spawn");
  writeFileSync(join(dir, "standalone.pid"), String(other.pid));
  expect(() => takeDirectory(dir)).not.toThrow();
  other.kill("SIGKILL");
});

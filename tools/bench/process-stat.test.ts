/* oxlint-disable jest/no-standalone-expect -- onLinux declares a test */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "@jest/globals";
import { childrenOf, cpuUsOfTree, parseStat, statOf } from "./process-stat.ts";

test("parses the parent and the times of a process whose name contains a parenthesis", () => {
  const stat = "42 (node) (main) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 20 5 20 0 11 0 1000 0 0";
  expect(parseStat(stat)).toEqual({ parent: 7, cpuUs: 2_000_000, endedChildrenUs: 250_000 });
});

const onLinux = process.platform === "linux" ? test : test.skip;

onLinux("a tree includes its running and its ended children", async () => {
  const busy = "const began = process.cpuUsage(); while (process.cpuUsage(began).user < 50_000);";
  const shell = spawn("sh", ["-c", `"${process.execPath}" -e '${busy}'; echo ended; cat`]);
  await once(shell.stdout, "data");
  expect(childrenOf(process.pid)).toContain(shell.pid);
  expect(statOf(shell.pid!)?.parent).toBe(process.pid);
  expect(cpuUsOfTree(shell.pid!)).toBeGreaterThanOrEqual(50_000);
  shell.stdin.end();
  await once(shell, "exit");
  expect(statOf(shell.pid!)).toBeUndefined();
});

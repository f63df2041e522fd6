import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import { WorkerSupervisor } from "../src/worker-supervisor.ts";

test("settings that workers do not take are told once, by name", async () => {
  const dir = await mkdtemp(join(tmpdir(), "millwright-supervisor-"));
  const told: string[] = [];
  const env = { PATH: process.env["PATH"] ?? "", MILLWRIGHT_SANDBOX_MEMORY: "plenty" };
  const supervisor = new WorkerSupervisor({ url: "http://127.0.0.1:1", workerKey: "mww_test", name: "w", count: 2, slots: 1, sandbox: "auto", dir, env }, createLogger({ service: "test", level: "silent" }), (text) => told.push(text));
  try {
    supervisor.start();
    // Each of the two workers has been started again after it had told why.
    for (const worker of ["worker-1.log", "worker-2.log"]) await eventually(async () => (await readFile(join(dir, worker), "utf8")).split("Invalid configuration").length > 2);
    expect(told).toEqual([expect.stringMatching(/^No run can be executed, because workers do not start: Invalid configuration:\n {2}MILLWRIGHT_SANDBOX_MEMORY must be a size[^\n]*$/)]);
  } finally {
    await supervisor.stop();
    await rm(dir, { recursive: true, force: true });
  }
});

import { closeSync, openSync } from "node:fs";
import { mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import { WorkerSupervisor } from "../src/worker-supervisor.ts";

test("what workers write to standard error is printed once and stays in their logs", async () => {
  const dir = await mkdtemp(join(tmpdir(), "millwright-supervisor-"));
  const printed: string[] = [];
  const env = { PATH: process.env["PATH"] ?? "", MILLWRIGHT_SANDBOX_MEMORY: "plenty" };
  const settings = {
    url: "http://127.0.0.1:1",
    workerKey: "mww_test",
    name: "w",
    count: 2,
    slots: 1,
    sandbox: "auto",
    dir,
    env,
  };
  const supervisor = new WorkerSupervisor(settings, createLogger({ service: "test", level: "silent" }), (line) =>
    printed.push(line),
  );
  try {
    supervisor.start();
    // Each of the two workers was restarted at least once after it had written the reason.
    for (const worker of ["worker-1.log", "worker-2.log"])
      await eventually(
        async () => (await readFile(join(dir, worker), "utf8")).split("Invalid configuration").length > 2,
      );
    expect(printed).toHaveLength(3);
    expect(printed.join("\n")).toMatch(
      /worker: Invalid configuration:\nworker: {3}MILLWRIGHT_SANDBOX_MEMORY must be a size/,
    );
    expect(printed).toContain("No run can be executed, because workers do not start with these settings.");
  } finally {
    await supervisor.stop();
    await rm(dir, { recursive: true, force: true });
  }
});

test("a worker has its own working directory, the listed environment and no file descriptor of the platform", async () => {
  const dir = await mkdtemp(join(tmpdir(), "millwright-supervisor-"));
  const secret = openSync(join(dir, "secret"), "w");
  process.env["MILLWRIGHT_TEST_SECRET"] = "must not be inherited";
  const settings = {
    url: "http://127.0.0.1:1",
    workerKey: "mww_test",
    name: "w",
    count: 1,
    slots: 1,
    sandbox: "none",
    dir,
    env: { PATH: process.env["PATH"] ?? "" },
  };
  const supervisor = new WorkerSupervisor(settings, createLogger({ service: "test", level: "silent" }), () => {});
  try {
    supervisor.start();
    const [pid = ""] = await eventually(async () => {
      const children = (await readFile(`/proc/self/task/${process.pid}/children`, "utf8")).trim().split(" ");
      const workers = await Promise.all(
        children.map(async (child) =>
          (await readFile(`/proc/${child}/cmdline`, "utf8")).includes("worker/src/main.ts") ? [child] : [],
        ),
      );
      expect(workers.flat()).toHaveLength(1);
      return workers.flat();
    });
    const environment = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").filter((line) => line !== "");
    expect(environment.map((line) => line.split("=")[0]!).toSorted((a, b) => a.localeCompare(b))).toEqual([
      "MILLWRIGHT_SANDBOX",
      "MILLWRIGHT_URL",
      "MILLWRIGHT_WORKER_DIR",
      "MILLWRIGHT_WORKER_ID",
      "MILLWRIGHT_WORKER_KEY",
      "MILLWRIGHT_WORKER_SLOTS",
      "MILLWRIGHT_WORKER_SUPERVISED",
      "PATH",
    ]);
    expect(await readlink(`/proc/${pid}/cwd`)).toBe(join(dir, "worker-1"));
    const opened = await Promise.all(
      (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "closed")),
    );
    expect(opened).toContain(join(dir, "worker-1.log"));
    expect(opened.filter((path) => path.startsWith(dir) && path !== join(dir, "worker-1.log"))).toEqual([]);
  } finally {
    delete process.env["MILLWRIGHT_TEST_SECRET"];
    closeSync(secret);
    await supervisor.stop();
    await rm(dir, { recursive: true, force: true });
  }
});

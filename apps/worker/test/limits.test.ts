import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { lstat, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { Cgroups } from "../src/sandbox/cgroups.ts";
import { DEFAULT_LIMITS } from "../src/sandbox/limits.ts";
import type { Sandbox } from "../src/sandbox/sandbox.ts";
import { bareHost, type SandboxHost } from "../src/sandbox/spec.ts";
import { inBubblewrap, markedSeconds, probe, processesLike, withDirectory, withSandbox } from "./support/sandboxes.ts";

const MIB = 1024 ** 2;
/** Limits that are low enough for bombs that no machine is affected by. */
const limits = {
  ...DEFAULT_LIMITS,
  memoryBytes: 256 * MIB,
  processes: 200,
  diskBytes: 40 * MIB,
  fileBytes: 16 * MIB,
  temporaryBytes: 8 * MIB,
};
const output = async (command: string, sandbox: Sandbox) => (await sandbox.exec(command)).output.trim();

/** Allocates `mib` of memory in each of `count` processes. Ends by itself if it is not stopped. */
const memoryBomb = (count: number, mib: number) =>
  `for i in $(seq ${count}); do node -e "const b = Buffer.alloc(${mib} << 20, 1); setTimeout(() => b, 30000)" & done; wait`;
/** Starts at most 600 processes. */
const forkBomb = "for i in $(seq 600); do sleep 20 & done; wait";
/** Writes at most 400 MiB in chunks, which takes longer than the interval of disk checks. */
const diskBomb = (target: string) =>
  `for i in $(seq 40); do head -c 10M /dev/zero > ${target}-$i; sync ${target}-$i; sleep 0.5; done`;

/** The capabilities of this machine, and those of every Linux system. */
const hosts: [name: string, host: SandboxHost][] = [
  ...(probe.host.cgroups
    ? [
        [`cgroup-${probe.host.cgroups.version}: ${probe.host.cgroups.controllers.join(", ")}`, probe.host] as [
          string,
          SandboxHost,
        ],
      ]
    : []),
  ["prlimit and watch", bareHost("bwrap")],
];

for (const [name, host] of hosts) {
  inBubblewrap(`a sandbox limited by ${name}`, () => {
    const ended = async (sandbox: Sandbox, command: string) => {
      await expect(sandbox.exec(command)).rejects.toThrow(/The run|sandbox/);
      await sandbox.gone;
      return sandbox.breach?.reason;
    };

    test("that exceeds its memory is ended with that reason", () =>
      withSandbox(async (sandbox) => expect(await ended(sandbox, memoryBomb(4, 100))).toBe("container_oom"), {
        host,
        limits,
      }));

    test("that starts too many processes is ended, with all of them", async () => {
      const seconds = markedSeconds();
      await withSandbox(
        async (sandbox) =>
          expect(await ended(sandbox, forkBomb.replace("sleep 20", `sleep ${seconds}`))).toBe("process_limit"),
        { host, limits },
      );
      expect(processesLike(seconds)).toEqual([]);
    });

    test.each(["workspace", "home"] as const)("that fills the disk is ended (%s)", (place) =>
      withSandbox(
        async (sandbox, dir) => {
          expect(await ended(sandbox, diskBomb(`${sandbox[place]}/file`))).toBe("disk_limit");
          expect(await readdir(join(dir, place))).not.toEqual([]);
        },
        { host, limits },
      ),
    );

    test("that creates too many files is ended", () =>
      withSandbox(
        async (sandbox) => {
          expect(
            await ended(sandbox, "for i in $(seq 400); do mkdir d$i; (cd d$i; seq 50 | xargs touch); sleep 0.02; done"),
          ).toBe("disk_limit");
          expect(sandbox.breach).toMatchObject({
            resource: "files",
            limit: 3_000,
            message: expect.stringMatching(/more than the limit of 3000/),
          });
        },
        { host, limits: { ...limits, files: 3_000 } },
      ));

    test("that fills the disk with files in no directory is ended too", () =>
      withSandbox(
        async (sandbox) => {
          const hidden =
            "for i in $(seq 40); do exec {fd}> f; rm f; head -c 10M /dev/zero >&$fd; sync -d /proc/self/fd/$fd; sleep 0.5; done";
          expect(await ended(sandbox, hidden)).toBe("disk_limit");
        },
        { host, limits },
      ));

    test("cannot write a too large file or fill its temporary directories, and continues", () =>
      withSandbox(
        async (sandbox) => {
          expect((await sandbox.exec("head -c 20M /dev/zero > large")).exitCode).not.toBe(0);
          expect((await sandbox.exec("head -c 12M /dev/zero > /tmp/large")).output).toMatch(/No space left/);
          expect(sandbox.breach).toBeUndefined();
          expect(await output("rm large /tmp/large; echo on", sandbox)).toBe("on");
        },
        { host, limits },
      ));

    test("has nothing writable but its own directories", () =>
      withSandbox(
        async (sandbox) => {
          for (const path of ["/x", "/run/x", "/var/x", "/dev/x", "/etc/x", "/home/x", "/usr/x"])
            expect([path, (await sandbox.exec(`echo x > ${path}`)).exitCode]).toEqual([path, 1]);
          expect(await output("echo a > /dev/null; echo b > /dev/shm/b; cat /dev/shm/b", sandbox)).toBe("b");
        },
        { host, limits },
      ));

    test("reveals nothing of the host in its first process", () =>
      withSandbox(
        async (sandbox, dir) => {
          const visible = await output("tr '\\0' '\\n' < /proc/1/cmdline; tr '\\0' '\\n' < /proc/1/environ", sandbox);
          expect(visible).toContain("--args");
          expect(visible).not.toContain(dir);
          expect(visible).not.toContain(process.cwd());
        },
        { host, limits },
      ));
  });
}

const { cgroups } = probe.host;
(cgroups ? describe : describe.skip)("cgroups (where this machine has them)", () => {
  test("of a sandbox end with it, also a daemon without its mark", async () => {
    const seconds = markedSeconds();
    await withSandbox(
      async (sandbox) => void (await sandbox.exec(`env -i setsid sleep ${seconds} >/dev/null 2>&1 &`)),
      { host: { ...probe.host, kind: "none" } },
    );
    expect(processesLike(seconds)).toEqual([]);
  });

  test("of a killed worker are ended by the next one, also daemons without a mark, but not those of running workers", () =>
    withDirectory(async (dir) => {
      const [seconds, own] = [markedSeconds(), cgroups!.create(limits)];
      const from = (name: string) => JSON.stringify(new URL(`../src/sandbox/${name}.ts`, import.meta.url).href);
      const script = `const { Cgroups } = await import(${from("cgroups")}); const { startWorkspaceSandbox } = await import(${from("start-sandbox")}); const { bareHost } = await import(${from("spec")});
        const sandbox = await startWorkspaceSandbox({ ...bareHost("none"), cgroups: await Cgroups.open("auto") }, ${JSON.stringify(dir)}, {});
        await sandbox.exec("env -i setsid sleep ${seconds} >/dev/null 2>&1 & sleep ${seconds}");`;
      const worker = spawn(
        process.execPath,
        ["--conditions=@millwright/source", "--no-warnings", "--input-type=module", "-e", script],
        { stdio: "ignore" },
      );
      await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(2));
      const ended = once(worker, "exit");
      worker.kill("SIGKILL");
      await ended;
      // the daemon; a worker of a concurrent suite may have ended it
      await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBeLessThanOrEqual(1));
      const next = await Cgroups.open("auto");
      expect(processesLike(seconds)).toEqual([]);
      expect(spawnSync(own.enter(["true"])[0]!, own.enter(["true"]).slice(1)).status).toBe(0);
      await own.end();
      expect(spawnSync(own.enter(["true"])[0]!, own.enter(["true"]).slice(1)).status).toBe(125);
      expect(next).toBeInstanceOf(Cgroups);
    }));
});

describe("cgroups of version 2", () => {
  test("get their limits and report the kernel's counters (with its files only; with the kernel where it has cgroups)", () =>
    withDirectory(async (dir) => {
      await writeFile(join(dir, "cgroup.controllers"), "cpu memory pids");
      await writeFile(join(dir, "memory.swap.max"), "");
      const opened = await Cgroups.open(dir);
      if (!(opened instanceof Cgroups)) throw new Error(opened.unavailable);
      expect(opened.controllers.toSorted()).toEqual(["cpu", "memory", "pids"]);
      expect(await readFile(join(dir, "cgroup.subtree_control"), "utf8")).toBe("+cpu +memory +pids");
      const cgroup = opened.create({ ...limits, cpus: 0.5 });
      const worker = join(
        dir,
        (await readdir(dir)).find((name) => name.startsWith("millwright-"))!,
      );
      const own = join(
        worker,
        (await readdir(worker)).find((name) => name.startsWith("sandbox-"))!,
      );
      const written = await Promise.all(
        ["memory.max", "pids.max", "cpu.max"].map((name) => readFile(join(own, name), "utf8")),
      );
      expect(written).toEqual([String(256 * MIB), "200", "50000 100000"]);
      expect([cgroup.oomKills(), cgroup.refusedForks()]).toEqual([0, 0]);
      await writeFile(join(own, "memory.events"), "low 0\noom 3\noom_kill 2\n");
      await writeFile(join(own, "pids.events"), "max 7\n");
      expect([cgroup.oomKills(), cgroup.refusedForks()]).toEqual([2, 7]);
      expect(await Cgroups.open(join(dir, "absent"))).toMatchObject({ unavailable: expect.stringMatching(/absent/) });
    }));
});

const { users } = probe.host; // set if the probe could use a separate user
(users ? inBubblewrap : describe.skip)("a worker that is root and can give sandboxes a user", () => {
  test("runs sandboxes as another user, whose files they are, and gives the user to the next one", async () => {
    const uid = 60_600;
    for (const again of [1, 2]) {
      await withSandbox(
        async (sandbox, dir) => {
          expect(await output("id -u; touch made; ls -n made | cut -d' ' -f3", sandbox)).toBe("1000\n1000");
          expect([again, (await lstat(join(dir, "workspace", "made"))).uid]).toEqual([again, uid]);
        },
        { host: { ...bareHost("bwrap"), users: users! }, limits },
      );
    }
  });

  test("is limited in its number of processes by the kernel", () =>
    withSandbox(
      async (sandbox) => {
        await expect(sandbox.exec(forkBomb)).rejects.toThrow(/exceeded its limit of \d+ processes/);
        await eventually(() => expect(existsSync(`/proc/${sandbox.pid}`)).toBe(false));
      },
      { host: { ...bareHost("bwrap"), users: users! }, limits },
    ));
});

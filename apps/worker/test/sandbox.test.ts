import { spawn } from "node:child_process";
import { lstat, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { findPrlimit } from "../src/sandbox/bubblewrap.ts";
import {
  inBubblewrap,
  inEachSandbox,
  markedSeconds,
  processesLike,
  withDirectory,
  withSandbox,
} from "./support/sandboxes.ts";

const output = async (command: string, run: { exec(command: string): Promise<{ output: string }> }) =>
  (await run.exec(command)).output.trim();

inBubblewrap("the isolation of a sandbox", () => {
  test("no host file outside its own is seen", () =>
    withSandbox(async (sandbox, dir) => {
      await writeFile(join(dir, "secret"), "secret");
      for (const path of [
        join(dir, "secret"),
        "/root",
        "/etc/shadow",
        "/etc/hostname",
        "/var/lib",
        "/sys",
        "/boot",
        process.cwd(),
      ]) {
        expect(await output(`test -e '${path}' && echo seen; true`, sandbox)).toBe("");
      }
      expect((await output("ls /", sandbox)).split("\n")).toEqual(
        expect.arrayContaining(["workspace", "home", "usr", "proc"]),
      );
      expect(await output("cat /etc/passwd | cut -d: -f1 | xargs", sandbox)).toBe("root agent nobody");
    }));

  test("there is no network but its own loopback", () =>
    withSandbox(async (sandbox) => {
      expect(await output("grep -o '^ *[a-z0-9]*:' /proc/net/dev | tr -d ' :'", sandbox)).toBe("lo");
      const { exitCode } = await sandbox.exec("exec 9<>/dev/tcp/1.1.1.1/53");
      expect(exitCode).not.toBe(0);
    }));

  test("/proc shows only what docs/guides/workers.md lists of the machine", () =>
    withSandbox(async (sandbox) => {
      const readable = await output(
        'cd /proc; for name in [!0-9]*; do if test -d $name; then test -n "$(ls $name 2>/dev/null)"; else test -n "$(timeout 1 head -c1 $name 2>/dev/null)"; fi && echo $name; done; true',
        sandbox,
      );
      const own = ["mounts", "net", "self", "thread-self"];
      const guide = await readFile(new URL("../../../docs/guides/workers.md", import.meta.url), "utf8");
      for (const name of readable.split("\n").filter((path) => !own.includes(path)))
        expect(guide).toContain(`\`/proc/${name}\``);
    }));

  test("it runs as an ordinary user without capabilities, and cannot gain any", () =>
    withSandbox(async (sandbox) => {
      expect(await output("id -u; grep CapEff /proc/self/status | cut -f2", sandbox)).toBe("1000\n0000000000000000");
      expect((await sandbox.exec("unshare --user --map-root-user true")).exitCode).not.toBe(0);
      expect((await sandbox.exec("touch /usr/x")).exitCode).not.toBe(0);
    }));

  test("files it writes belong to the user who runs the worker", () =>
    withSandbox(async (sandbox, dir) => {
      await sandbox.exec("echo hi > made && chmod 755 made");
      const made = await lstat(join(dir, "workspace", "made"));
      expect([made.uid, made.mode & 0o777]).toEqual([process.getuid?.(), 0o755]);
    }));

  test("its environment is complete, inherits nothing, and appears in no argument list", () =>
    withSandbox(
      async (sandbox) => {
        expect(await output('echo "$TOKEN"', sandbox)).toBe("canary-4711");
        expect(await output("env | grep -c JEST", sandbox)).toBe("0");
        expect(processesLike("canary-4711")).toEqual([]);
      },
      { env: { TOKEN: "canary-4711" } },
    ));
});

inBubblewrap("file operations", () => {
  test("a path or symbolic link that leads outside the workspace is rejected", () =>
    withSandbox(async (sandbox, dir) => {
      await mkdir(join(dir, "workspace", "inner"));
      await symlink("/etc", join(dir, "workspace", "etc"));
      await symlink("/home/agent/new", join(dir, "workspace", "nowhere"));
      await symlink("inner", join(dir, "workspace", "fine"));
      const refused = { code: "outside_workspace" };
      for (const path of ["../home/agent/x", "/etc/passwd", "etc/passwd", "nowhere", "inner/../../home/x"]) {
        await expect(sandbox.readFile(sandbox.workspace, path, 100)).rejects.toMatchObject(refused);
        await expect(sandbox.writeFile(sandbox.workspace, path, Buffer.from("x"))).rejects.toMatchObject(refused);
        await expect(sandbox.stat(sandbox.workspace, path)).rejects.toMatchObject(refused);
      }
      await sandbox.writeFile(sandbox.workspace, "fine/x", Buffer.from("x"));
      expect(await readFile(join(dir, "workspace", "inner", "x"), "utf8")).toBe("x");
    }));

  test("large binary files are unchanged, and too large ones are rejected", () =>
    withSandbox(async (sandbox) => {
      const content = Buffer.from(Array.from({ length: 1_300_000 }, (_, index) => (index * 7) % 256));
      expect(await sandbox.writeFile(sandbox.workspace, "deep/er/file", content)).toEqual({ created: true });
      expect(content.equals(await sandbox.readFile(sandbox.workspace, "deep/er/file", 2_000_000))).toBe(true);
      await expect(sandbox.readFile(sandbox.workspace, "deep/er/file", 1_000_000)).rejects.toThrow(/limit is 1000000/);
      expect(await sandbox.writeFile(sandbox.workspace, "deep/er/file", Buffer.alloc(0))).toEqual({ created: false });
      expect((await sandbox.stat(sandbox.workspace, "deep/er/file")).sizeBytes).toBe(0);
    }));

  test("rejects reads of files that are not regular", () =>
    withSandbox(async (sandbox) => {
      await sandbox.exec("mkfifo pipe");
      await expect(sandbox.readFile(sandbox.workspace, "pipe", 10)).rejects.toMatchObject({ code: "not_a_file" });
      await expect(sandbox.readFile(sandbox.workspace, "absent", 10)).rejects.toMatchObject({ code: "not_found" });
    }));

  test("a listing of very long names is cut before its line is too long for the protocol", () =>
    withSandbox(async (sandbox) => {
      await sandbox.exec(
        `name=$(printf '\\001%.0s' {1..200}); mkdir -p $name/$name/$name && cd $name/$name/$name && seq 700 | sed "s/^/$name/" | xargs touch`,
      );
      const listed = await sandbox.list(sandbox.workspace, ".", "", 4);
      expect([listed.truncated, listed.entries.length > 100]).toEqual([true, true]);
    }));

  test("a listing is sorted, limited and does not descend into .git and node_modules", () =>
    withSandbox(async (sandbox) => {
      await sandbox.exec("mkdir -p .git/a b/c node_modules/d && touch b/c/x.ts b/y.ts z.md");
      const all = await sandbox.list(sandbox.workspace, ".", "", 3);
      expect(all.entries.map((entry) => entry.path)).toEqual([
        ".git",
        "b",
        "b/c",
        "b/c/x.ts",
        "b/y.ts",
        "node_modules",
        "z.md",
      ]);
      expect((await sandbox.list(sandbox.workspace, ".", "*.ts", 3)).entries.map((entry) => entry.path)).toEqual([
        "b/c/x.ts",
        "b/y.ts",
      ]);
      await sandbox.exec("mkdir many && cd many && seq 1100 | xargs touch");
      const many = await sandbox.list(sandbox.workspace, "many", "", 1);
      expect([many.entries.length, many.truncated]).toEqual([1_000, true]);
    }));
});

inBubblewrap("a start", () => {
  test.each(["bwrap", "none"] as const)("that the system rejects fails alone, and the worker continues (%s)", (kind) =>
    withDirectory(async (dir) => {
      const source = new URL("../src/sandbox", import.meta.url).href;
      const script = `import { openSync, closeSync } from "node:fs";
        const { startWorkspaceSandbox } = await import(${JSON.stringify(`${source}/start-sandbox.ts`)});
        const { bareHost } = await import(${JSON.stringify(`${source}/spec.ts`)});
        const open = [];
        try { for (;;) open.push(openSync("/dev/null")); } catch { closeSync(open.pop()); closeSync(open.pop()); }
        await startWorkspaceSandbox(bareHost(${JSON.stringify(kind)}), ${JSON.stringify(dir)}, {}).catch(() => undefined);
        setImmediate(() => process.exit(42));`;
      const args = [
        "--nofile=64",
        "--",
        process.execPath,
        "--conditions=@millwright/source",
        "--no-warnings",
        "--input-type=module",
        "-e",
        script,
      ];
      const worker = spawn(findPrlimit() ?? "prlimit", args, { stdio: "ignore" });
      expect(await new Promise((resolve) => worker.once("exit", resolve))).toBe(42);
    }),
  );
});

inEachSandbox("commands", (kind) => {
  test("report their exit code, their output in order, and their final directory", () =>
    withSandbox(
      async (sandbox) => {
        const run = await sandbox.exec("mkdir -p sub && cd sub && echo out && echo err >&2 && (exit 3)");
        expect(run).toMatchObject({
          exitCode: 3,
          output: "out\nerr\n",
          truncated: false,
          timedOut: false,
          stopped: false,
          cwd: `${sandbox.workspace}/sub`,
        });
        expect(await sandbox.exec(["printf", "%s", "a b"])).toMatchObject({ exitCode: 0, output: "a b" });
        await expect(sandbox.exec("true", { cwd: "/absent" })).rejects.toMatchObject({ code: "no_such_directory" });
        await expect(sandbox.exec(["/absent/program"])).rejects.toMatchObject({ code: "cannot_start" });
      },
      { kind },
    ));

  test("long output retains its head and its tail", () =>
    withSandbox(
      async (sandbox) => {
        const run = await sandbox.exec("echo first; seq 1 100000; echo last");
        expect(run.truncated).toBe(true);
        expect(Buffer.byteLength(run.output)).toBeLessThan(66_000);
        expect(run.output).toMatch(/^first\n1\n2\n[^]*bytes omitted[^]*100000\nlast\n$/);
      },
      { kind },
    ));

  test("show no secret, also where their output is cut in the middle of one", () =>
    withSandbox(
      async (sandbox) => {
        const head = await sandbox.exec(
          'head -c 32763 /dev/zero | tr "\\0" x; printf %s "$TOKEN"; head -c 99999 /dev/zero | tr "\\0" y',
        );
        const tail = await sandbox.exec(
          'head -c 99999 /dev/zero | tr "\\0" x; printf %s "$TOKEN"; head -c 32763 /dev/zero | tr "\\0" y',
        );
        for (const { output: shown, truncated } of [head, tail])
          expect([truncated, /[canry]{3}|471/.exec(shown.replaceAll(/[xy]{2,}/g, ""))]).toEqual([true, null]);
        expect(await output('printf %s "$TOKEN" | base64; (printf can; sleep 0.05; printf ary-4711)', sandbox)).toMatch(
          /^\*\*\*.?=*\n\*\*\*$/,
        );
      },
      { kind, env: { TOKEN: "canary-4711" }, secrets: ["canary-4711"] },
    ));

  test("that take too long are ended with their whole group", () =>
    withSandbox(
      async (sandbox) => {
        const seconds = markedSeconds();
        const run = await sandbox.exec(`trap '' TERM; sleep ${seconds} & echo started; wait; sleep ${seconds}`, {
          timeoutMs: 300,
        });
        expect(run).toMatchObject({ timedOut: true, output: "started\n" });
        await eventually(() => expect(processesLike(seconds)).toEqual([]));
        expect(await output("echo alive", sandbox)).toBe("alive");
      },
      { kind },
    ));

  test("that are aborted are ended with that reason", () =>
    withSandbox(
      async (sandbox) => {
        const seconds = markedSeconds();
        const abort = new AbortController();
        const running = sandbox.exec(`sleep ${seconds}`, { signal: abort.signal });
        await eventually(() => expect(processesLike(seconds)).not.toEqual([]));
        abort.abort();
        expect(await running).toMatchObject({ stopped: true, signal: "SIGTERM", exitCode: null });
      },
      { kind },
    ));

  test("may leave something running, which ends with the sandbox", async () => {
    const seconds = markedSeconds();
    await withSandbox(
      async (sandbox) => {
        expect(
          await output(`sleep ${seconds} & setsid nohup sleep ${seconds} >/dev/null 2>&1 & echo left`, sandbox),
        ).toBe("left");
        await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(2));
      },
      { kind },
    );
    expect(processesLike(seconds)).toEqual([]);
  });

  test("die when the sandbox is killed in the middle of one", () =>
    withSandbox(
      async (sandbox) => {
        const seconds = markedSeconds();
        const running = sandbox.exec(`setsid sleep ${seconds} & sleep ${seconds}`);
        running.catch(() => undefined);
        await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(2));
        sandbox.kill();
        await sandbox.gone;
        await expect(running).rejects.toThrow(/ended/);
        expect(processesLike(seconds)).toEqual([]);
        await expect(sandbox.exec("true")).rejects.toThrow(/ended/);
      },
      { kind },
    ));

  test("die when the worker is killed", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      const source = new URL("../src/sandbox", import.meta.url).href;
      const script = `const { startWorkspaceSandbox } = await import(${JSON.stringify(`${source}/start-sandbox.ts`)});
        const { bareHost } = await import(${JSON.stringify(`${source}/spec.ts`)});
        const sandbox = await startWorkspaceSandbox(bareHost(${JSON.stringify(kind)}), ${JSON.stringify(dir)}, {});
        await sandbox.exec("sleep ${seconds}");`;
      const worker = spawn(
        process.execPath,
        ["--conditions=@millwright/source", "--no-warnings", "--input-type=module", "-e", script],
        { stdio: "ignore" },
      );
      await eventually(() => expect(processesLike(`sleep\0${seconds}`).length).toBe(1));
      worker.kill("SIGKILL");
      await eventually(() => expect(processesLike(`sleep\0${seconds}`)).toEqual([]));
    }));
});

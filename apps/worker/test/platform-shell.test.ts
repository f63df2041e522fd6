import { readdirSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { DEFAULT_LIMITS } from "../src/sandbox/limits.ts";
import { PlatformShell } from "../src/sandbox/platform-shell.ts";
import { bareHost, type SandboxKind } from "../src/sandbox/spec.ts";
import { inEachSandbox, markedSeconds, processesLike, withDirectory } from "./support/sandboxes.ts";

inEachSandbox("a script of the platform", (kind: SandboxKind) => {
  const inShell = <T>(
    dir: string,
    use: (shell: PlatformShell) => Promise<T>,
    signal = new AbortController().signal,
    limits = DEFAULT_LIMITS,
  ): Promise<T> => PlatformShell.use({ host: bareHost(kind), dir, signal, limits, ownSandbox: () => {} }, use);

  test("has ended with everything that it started, and its outbox is removed with the shell", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      await inShell(dir, async (shell) => {
        const run = await shell.run(`setsid sleep ${seconds} & echo out; echo err >&2; echo saved > "$OUTBOX/file"`, {
          timeoutMs: 60_000,
        });
        expect(run).toEqual({ exitCode: 0, timedOut: false, output: "out\n" });
        expect([processesLike(seconds), readdirSync(shell.outbox)]).toEqual([[], ["file"]]);
        expect(await shell.run("echo cause >&2; exit 3", { timeoutMs: 60_000 })).toEqual({
          exitCode: 3,
          timedOut: false,
          output: "cause",
        });
      });
      expect(readdirSync(dir).filter((name) => name.startsWith("shell-"))).toEqual([]);
    }));

  test("is ended when it takes too long, and when it is aborted", () =>
    withDirectory(async (dir) => {
      const seconds = markedSeconds();
      expect(await inShell(dir, (shell) => shell.run(`sleep ${seconds}`, { timeoutMs: 200 }))).toMatchObject({
        exitCode: null,
        timedOut: true,
      });
      const abort = new AbortController();
      const running = inShell(dir, (shell) => shell.run(`sleep ${seconds}`, { timeoutMs: 60_000 }), abort.signal);
      abort.abort(new Error("cancelled"));
      await expect(running).rejects.toThrow("cancelled");
      expect(processesLike(seconds)).toEqual([]);
    }));

  test("is subject to the limits of its run", () =>
    withDirectory(async (dir) => {
      const script =
        'for i in $(seq 400); do mkdir "$OUTBOX/$i"; (cd "$OUTBOX/$i" && seq 50 | xargs touch); sleep 0.02; done';
      const run = await inShell(dir, (shell) => shell.run(script, { timeoutMs: 120_000 }), undefined, {
        ...DEFAULT_LIMITS,
        files: 3_000,
      });
      expect(run).toMatchObject({ exitCode: null, output: expect.stringMatching(/more than the limit of 3000/) });
    }));
});

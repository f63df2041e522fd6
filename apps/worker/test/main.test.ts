import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { eventually } from "@millwright/testing";
import { FakePlatform, WORKER_KEY } from "./fake-platform.ts";
import { aBareRepository, aRepository } from "./support/repositories.ts";
import { inBubblewrap, processesLike } from "./support/sandboxes.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

let platform: FakePlatform;
let dir: string;
let children: ChildProcess[] = [];
beforeEach(async () => {
  platform = await new FakePlatform().start();
  dir = await mkdtemp(join(tmpdir(), "millwright-main-"));
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children = [];
  await platform.stop();
  await rm(dir, { recursive: true });
});

/** Starts the real process, as `node main.ts` does. */
function startMain(env: Record<string, string> = {}, wrapper: readonly string[] = []) {
  const [program, ...args] = [...wrapper, process.execPath, "--conditions=@millwright/source", "--no-warnings", MAIN];
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      MILLWRIGHT_URL: platform.url,
      MILLWRIGHT_WORKER_KEY: WORKER_KEY,
      MILLWRIGHT_WORKER_DIR: dir,
      MILLWRIGHT_SANDBOX: "none",
      ...env,
    },
  });
  children.push(child);
  let stderr = "";
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  return {
    child,
    ended: once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>,
    stdout: () => stdout,
    stderr: () => stderr,
  };
}
type Started = ReturnType<typeof startMain>;
const isReady = () => eventually(() => platform.heartbeats.length > 0);

describe("the worker process", () => {
  test("ends when its parent's pipe closes", async () => {
    const { child, ended } = startMain({ MILLWRIGHT_WORKER_SUPERVISED: "1" });
    await isReady();
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
  });

  test("without a supervisor ignores a closed standard input, and drains on SIGTERM", async () => {
    const { child, ended } = startMain();
    child.stdin.end();
    await isReady();
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 1);
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await readdir(dir)).toEqual([]);
  });

  test("killed with SIGKILL leaves a directory that its successor removes", async () => {
    const first = startMain();
    await isReady();
    first.child.kill("SIGKILL");
    await first.ended;
    const [left] = await readdir(dir);
    const { length } = platform.registrations;
    const second = startMain({ MILLWRIGHT_WORKER_SUPERVISED: "1" });
    await eventually(() => platform.registrations.length > length);
    expect(await readdir(dir)).not.toContain(left);
    second.child.stdin.end();
    await second.ended;
  });

  test("exits with 3 and one sentence if the platform rejects its key, and with 2 if it is not configured", async () => {
    const refused = startMain({
      MILLWRIGHT_WORKER_KEY: "mww_other",
      MILLWRIGHT_SANDBOX: "optional",
      LOG_LEVEL: "info",
    });
    expect(await refused.ended).toEqual([3, null]);
    expect(
      refused
        .stdout()
        .split("\n")
        .filter((line) => line.includes("Register") || line.includes("drain")),
    ).toEqual([]);
    expect(refused.stderr().trimEnd().split("\n").at(-1)).toMatch(
      /^The platform at http:\/\/\S+ refuses this worker: [^\n]+$/,
    );
    const unconfigured = startMain({ MILLWRIGHT_URL: "", MILLWRIGHT_WORKER_KEY: "" });
    expect(await unconfigured.ended).toEqual([2, null]);
    expect(unconfigured.stderr()).toMatch(/MILLWRIGHT_URL[^]*MILLWRIGHT_WORKER_KEY/);
  });
});

/** Returns an assignment for the scripted provider. */
const scripted = (...steps: string[]): Partial<worker.Assignment> => ({
  provider: "scripted",
  modelId: "scripted",
  harness: "oz",
  executionSeq: 1,
  inputs: [
    create(worker.InputMessageSchema, {
      uid: "0199c2f0-1111-7abc-8def-0123456789ab",
      kind: "prompt",
      mode: "normal",
      text: `\`\`\`scripted\n${steps.join("\n")}\n\`\`\``,
    }),
  ],
});

describe("an execution in the real process", () => {
  test("runs its script to the end", async () => {
    startMain({ MILLWRIGHT_WORKER_SUPERVISED: "1" });
    const attempt = platform.offer(1n, scripted("- say: Working.", "- shell: echo all-good"));
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.completions[0]).toMatchObject({ outcome: "DONE", lastClientSeq: BigInt(attempt.events.length) });
    expect(attempt.events.find(({ kind }) => kind === "tool_end")?.payload).toMatchObject({
      state: "completed",
      output: { exit_code: 0 },
    });
  });

  test.each([
    ["stopped by SIGTERM", { MILLWRIGHT_WORKER_DRAIN: "1ms" }, ({ child }: Started) => child.kill("SIGTERM")],
    ["left by its parent", { MILLWRIGHT_WORKER_SUPERVISED: "1" }, ({ child }: Started) => child.stdin.end()],
  ])("whose worker is %s is returned to the platform, and leaves no process", async (_, env, stop) => {
    const mark = `99${process.pid}7`;
    const started = startMain(env);
    const attempt = platform.offer(1n, scripted(`- shell: sleep ${mark}`));
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    stop(started);
    expect(await started.ended).toEqual([0, null]);
    expect(platform.returned).toMatchObject([
      { executionId: 1n, attempt: 1, reason: "worker_stopping", failure: false },
    ]);
    expect([attempt.completions, processesLike(`sleep\0${mark}`)]).toEqual([[], []]);
  });

  test("whose sandbox does not start in time is returned with its cause", async () => {
    startMain({ MILLWRIGHT_SANDBOX_START_TIMEOUT: "1ms", MILLWRIGHT_WORKER_SUPERVISED: "1" });
    const attempt = platform.offer(1n, scripted("- say: Never said."));
    await eventually(() => platform.returned.length === 1);
    expect(platform.returned).toMatchObject([
      {
        reason: "sandbox_start_failed",
        message: expect.stringContaining("did not respond within 0.001 s"),
        failure: true,
      },
    ]);
    expect([attempt.completions, attempt.events]).toEqual([[], []]);
  });

  const outputOf = async (attempt: ReturnType<FakePlatform["offer"]>): Promise<string> => {
    await eventually(() => attempt.completions.length === 1);
    const { output } = attempt.events.find(({ kind }) => kind === "tool_end")!.payload as {
      output: { output: string };
    };
    return output.output;
  };

  inBubblewrap("whose worker inherited open files", () => {
    test("sees none of them", async () => {
      startMain({ MILLWRIGHT_SANDBOX: "bwrap" }, ["sh", "-c", 'exec 7</; exec 8</etc/hostname; exec "$@"', "sh"]);
      const output = await outputOf(
        platform.offer(1n, scripted("- shell: 'for n in 7 8; do readlink /proc/$$/fd/$n || echo closed; done'")),
      );
      expect(output).toBe("closed\nclosed\n");
    });
  });

  const asRoot = process.getuid?.() === 0 ? describe : describe.skip;
  asRoot("of a worker that is started as root (needs root)", () => {
    test("has an unprivileged user, which reaches the worker's directory and not what is closed to others", async () => {
      await writeFile(join(dir, "secret"), "secret", { mode: 0o600 });
      const { child } = startMain({ MILLWRIGHT_SANDBOX: "none", MILLWRIGHT_WORKER_DIR: join(dir, "worker") });
      const output = await outputOf(
        platform.offer(
          1n,
          scripted(`- shell: 'id -u; cat ${dir}/secret 2>/dev/null || echo refused; touch own && echo written'`),
        ),
      );
      expect(output).toBe("60599\nrefused\nwritten\n");
      expect(await readFile(`/proc/${child.pid}/status`, "utf8")).toMatch(
        /^Uid:\t60599\t60599\t60599\t60599$[^]*^CapEff:\t0+$/m,
      );
    });

    test("stays root only if requested", async () => {
      startMain({ MILLWRIGHT_SANDBOX: "none", MILLWRIGHT_WORKER_USER: "root" });
      expect(await outputOf(platform.offer(1n, scripted("- shell: id -u")))).toBe("0\n");
    });

    test("pushes to a local repository of root's, and what it writes there is root's", async () => {
      const roots = join(dir, "repositories");
      const bare = aBareRepository(roots);
      await chmod(roots, 0o700);
      startMain({
        MILLWRIGHT_SANDBOX: "none",
        MILLWRIGHT_WORKER_DIR: join(dir, "worker"),
        MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: roots,
      });
      const attempt = platform.offer(1n, {
        ...scripted("- write: {path: a.txt, content: x}", "- pull_request: Add it"),
        repositories: [aRepository(bare)],
      });
      await eventually(() => attempt.completions.length === 1);
      expect((await stat(join(bare, "refs", "heads", "agent", "run-1"))).uid).toBe(0);
    });
  });

  inBubblewrap("whose worker is killed outright", () => {
    test("leaves no process", async () => {
      const mark = `99${process.pid}1`;
      const { child, ended } = startMain({ MILLWRIGHT_SANDBOX: "bwrap" });
      platform.offer(1n, scripted(`- shell: setsid nohup sleep ${mark} & sleep ${mark}`));
      await eventually(() => processesLike(`sleep\0${mark}`).length >= 2);
      child.kill("SIGKILL");
      await ended;
      await eventually(() => processesLike(`sleep\0${mark}`).length === 0);
      expect(processesLike(`sleep\0${mark}`)).toEqual([]);
    });
  });

  test("whose worker was frozen and lost its lease is killed when the worker wakes, and writes nothing more", async () => {
    const mark = `99${process.pid}3`;
    const { child } = startMain();
    const attempt = platform.offer(1n, scripted(`- shell: sleep ${mark}; echo late`));
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    child.kill("SIGSTOP");
    attempt.state = "lost";
    const { length } = attempt.events;
    child.kill("SIGCONT");
    await eventually(() => processesLike(`sleep\0${mark}`).length === 0);
    expect(processesLike(`sleep\0${mark}`)).toEqual([]);
    await eventually(() => platform.heartbeats.at(-1)?.leases.length === 0);
    expect([attempt.events.length, attempt.completions]).toEqual([length, []]);
  });

  test("without a sandbox is killed by the next worker", async () => {
    const mark = `99${process.pid}2`;
    const first = startMain();
    platform.offer(1n, scripted(`- shell: sleep ${mark}`));
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    first.child.kill("SIGKILL");
    await first.ended;
    startMain({ MILLWRIGHT_WORKER_SUPERVISED: "1" });
    await eventually(() => processesLike(`sleep\0${mark}`).length === 0);
    expect(processesLike(`sleep\0${mark}`)).toEqual([]);
  });
});

describe("in one-run mode", () => {
  const oneRun = (offer: string, env: Record<string, string> = {}) =>
    startMain({ MILLWRIGHT_WORKER_KEY: "", MILLWRIGHT_WORKER_OFFER: offer, ...env });

  test("the worker accepts its one execution, completes it and exits with 0, whatever else is offered", async () => {
    const attempt = platform.dispatched(1n, scripted("- say: Working.", "- shell: echo all-good"));
    const other = platform.offer(2n, scripted("- say: Not mine."));
    expect(await oneRun(attempt.offerToken).ended).toEqual([0, null]);
    expect(attempt.completions).toMatchObject([{ outcome: "DONE", lastClientSeq: BigInt(attempt.events.length) }]);
    expect([platform.leaseRequests, other.state]).toEqual([[], "offered"]);
    expect(await readdir(dir)).toEqual([]);
  });

  test("a second process with the same offer runs nothing and exits with 4, while the first continues", async () => {
    const mark = `99${process.pid}4`;
    const attempt = platform.dispatched(1n, scripted(`- shell: sleep ${mark}`));
    const first = oneRun(attempt.offerToken);
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    expect(await oneRun(attempt.offerToken).ended).toEqual([4, null]);
    expect(attempt.completions).toEqual([]);
    first.child.kill("SIGKILL");
    await first.ended;
    // the next attempt continues what a killed process had started
    expect(await oneRun(attempt.offerToken).ended).toEqual([4, null]);
  });

  test("an offer in a file is accepted, and an invalid one is rejected as a configuration error", async () => {
    const attempt = platform.dispatched(1n, scripted("- say: Working."));
    const file = join(dir, "offer");
    await writeFile(file, `${attempt.offerToken}\n`);
    expect(await oneRun("", { MILLWRIGHT_WORKER_OFFER_FILE: file }).ended).toEqual([0, null]);
    const wrong = oneRun("mwo_nonsense-hunter2");
    expect(await wrong.ended).toEqual([2, null]);
    expect(wrong.stderr()).toMatch(/MILLWRIGHT_WORKER_OFFER must be an offer token/);
    expect(wrong.stderr()).not.toContain("hunter2");
    expect(await oneRun("", { MILLWRIGHT_WORKER_OFFER_FILE: join(dir, "absent") }).ended).toEqual([2, null]);
  });

  test("a cancelled execution is reported, exit 0; a lost one is left to its next attempt, exit 5", async () => {
    const mark = `99${process.pid}5`;
    const cancelled = platform.dispatched(1n, scripted(`- shell: sleep ${mark}`));
    const first = oneRun(cancelled.offerToken);
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    platform.direct(1n, 1n, { case: "cancel", value: create(worker.CancelSchema, { reason: "Enough." }) });
    expect(await first.ended).toEqual([0, null]);
    expect(cancelled.completions).toMatchObject([{ outcome: "CANCELLED" }]);
    const lost = platform.dispatched(2n, scripted(`- shell: sleep ${mark}`));
    const second = oneRun(lost.offerToken);
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    lost.state = "lost";
    expect(await second.ended).toEqual([5, null]);
    expect(lost.completions).toEqual([]);
    expect(processesLike(`sleep\0${mark}`)).toEqual([]);
  });

  test("an execution whose machine is stopped is returned to the platform, exit 5", async () => {
    const mark = `99${process.pid}8`;
    const attempt = platform.dispatched(1n, scripted(`- shell: sleep ${mark}`));
    const { child, ended } = oneRun(attempt.offerToken, { MILLWRIGHT_WORKER_DRAIN: "1ms" });
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    child.kill("SIGTERM");
    expect(await ended).toEqual([5, null]);
    expect(platform.returned).toMatchObject([
      { executionId: 1n, attempt: 1, reason: "worker_stopping", failure: false },
    ]);
    expect([attempt.completions, processesLike(`sleep\0${mark}`)]).toEqual([[], []]);
  });

  test("continues its execution with a new session after its session has become invalid", async () => {
    const mark = `99${process.pid}6`;
    const attempt = platform.dispatched(1n, scripted(`- shell: sleep ${mark}`));
    const { child, ended } = oneRun(attempt.offerToken);
    await eventually(() => processesLike(`sleep\0${mark}`).length > 0);
    platform.invalidateSession();
    await eventually(() => platform.registrations.length === 2);
    const { length } = attempt.heartbeats;
    await eventually(() => attempt.heartbeats.length > length);
    expect(platform.registrations[0]?.instanceUid).toBe(platform.registrations[1]?.instanceUid);
    child.kill("SIGKILL");
    await ended;
  });
});

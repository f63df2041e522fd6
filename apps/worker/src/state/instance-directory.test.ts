import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createLogger } from "@millwright/telemetry";
import { InstanceDirectory } from "./instance-directory.ts";
import { identify, isAlive, killLeftover } from "./process-identity.ts";
import { removeTree } from "../sandbox/remove-tree.ts";

const log = createLogger({ service: "worker", level: "silent" });
let root: string;
const children: ChildProcess[] = [];
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "millwright-state-"))));
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await removeTree(root);
});

/** Starts a process that leads its own process group, like an agent without a sandbox. */
async function aGroupLeader(): Promise<ChildProcess> {
  const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  children.push(child);
  await once(child, "spawn");
  return child;
}
/** Changes a directory to one that a killed worker left: its owner no longer runs. */
function leaveBehind(dir: InstanceDirectory): void {
  const owner = join(dir.path, "owner.json");
  writeFileSync(owner, JSON.stringify({ ...JSON.parse(readFileSync(owner, "utf8")), startedAt: "long ago" }));
}

describe("a worker's directory", () => {
  test("is private, and created with its owner file", async () => {
    const dir = await InstanceDirectory.open(root, "a", log);
    expect(statSync(dir.path).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(join(dir.path, "owner.json"), "utf8"))).toMatchObject({ pid: process.pid });
    expect(await dir.hasFreeDisk()).toBe(true);
  });

  test("is not removed by other workers while its own runs", async () => {
    const first = await InstanceDirectory.open(root, "a", log);
    await InstanceDirectory.open(root, "b", log);
    expect(readdirSync(root).sort()).toEqual(["instance-a", "instance-b"]);
    await first.remove();
    expect(readdirSync(root)).toEqual(["instance-b"]);
  });

  test("of a dead worker is removed by the next one, with its remaining processes", async () => {
    const dead = await InstanceDirectory.open(root, "a", log);
    const ended = await aGroupLeader();
    const running = await aGroupLeader();
    for (const { pid } of [ended, running]) dead.processes.add(pid!);
    dead.processes.remove(ended.pid!);
    leaveBehind(dead);
    const killed = once(running, "exit");
    await InstanceDirectory.open(root, "b", log);
    expect(await killed).toEqual([null, "SIGKILL"]);
    expect([readdirSync(root), ended.exitCode, ended.signalCode]).toEqual([["instance-b"], null, null]);
  });

  test("of a dead worker is removed only after every process that carries its sandbox's mark is gone", async () => {
    const dead = await InstanceDirectory.open(root, "a", log);
    const mark = `MILLWRIGHT_SANDBOX=test-${process.pid}`;
    const stray = spawn("sleep", ["1000"], {
      detached: true,
      stdio: "ignore",
      env: { MILLWRIGHT_SANDBOX: mark.slice(mark.indexOf("=") + 1) },
    });
    children.push(stray);
    await once(stray, "spawn");
    dead.processes.add(process.ppid, mark); // the sandbox's first process has ended and left this one behind
    writeFileSync(
      join(dead.path, "processes", `${process.ppid}.json`),
      JSON.stringify({ pid: 1, startedAt: "long ago", boot: "before", mark }),
    );
    leaveBehind(dead);
    await InstanceDirectory.open(root, "b", log);
    expect([isAlive(identify(stray.pid!) ?? { pid: 0, startedAt: "", boot: "" }), readdirSync(root)]).toEqual([
      false,
      ["instance-b"],
    ]);
  });

  test("that was partly created or partly removed is removed too", async () => {
    mkdirSync(join(root, "instance-cut", "processes"), { recursive: true });
    writeFileSync(join(root, "instance-cut", "owner.json"), '{"pid":');
    await InstanceDirectory.open(root, "b", log);
    expect(readdirSync(root)).toEqual(["instance-b"]);
  });
});

describe("a process of an earlier worker", () => {
  test("is not mistaken for a later one with its number", async () => {
    const stranger = await aGroupLeader();
    const now = identify(stranger.pid!)!;
    expect([isAlive(now), isAlive({ ...now, startedAt: "0" }), isAlive({ ...now, boot: "before" })]).toEqual([
      true,
      false,
      false,
    ]);
    killLeftover({ ...now, startedAt: "0" });
    killLeftover({ ...now, boot: "before" });
    expect(isAlive(now)).toBe(true);
  });

  test("that has ended is not alive", async () => {
    const child = await aGroupLeader();
    const then = identify(child.pid!)!;
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isAlive(then)).toBe(false);
    expect(() => killLeftover(then)).not.toThrow();
  });
});

test("a tree is removed though parts are unwritable, and links in it are not followed", async () => {
  const outside = join(root, "outside.txt");
  writeFileSync(outside, "keep");
  const tree = join(root, "tree");
  mkdirSync(join(tree, "cache", "module"), { recursive: true });
  writeFileSync(join(tree, "cache", "module", "f"), "x");
  symlinkSync(root, join(tree, "link"));
  chmodSync(join(tree, "cache", "module"), 0o555);
  chmodSync(join(tree, "cache"), 0o555);
  await removeTree(tree);
  expect([existsSync(tree), readFileSync(outside, "utf8")]).toEqual([false, "keep"]);
  rmSync(outside);
});

test("a tree with paths longer than the system's limit is removed", async () => {
  const tree = join(root, "tree");
  mkdirSync(tree);
  execFileSync(
    "sh",
    ["-c", 'name=$(printf "%0200d" 0); for n in $(seq 60); do mkdir $name && cd -P $name || exit 1; done'],
    { cwd: tree },
  );
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});

/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";

const DEMO = fileURLToPath(new URL("../../standalone/src/demo/main.ts", import.meta.url));
const LINK = /pull request {3}(\S+)/;
const CLOSED = "Links (they open while the platform runs: npm run demo -- --keep)";
const PRESS = "Press any key to stop it.";

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, "exit");
    process.kill(-child.pid!, "SIGKILL");
    await ended;
  }
});

/** The demo as `npm run demo -- …args` starts it: on a terminal of its own (util-linux `script`), or without one. */
function startDemo({ onTerminal }: { onTerminal: boolean }, ...args: string[]) {
  const command = [process.execPath, "--conditions=@millwright/source", "--no-warnings", DEMO, ...args];
  const [file, ...rest] = onTerminal ? ["script", "-qefc", command.join(" "), "/dev/null"] : command;
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(file!, rest, { detached: true, stdio: "pipe", env: { PATH, HOME } });
  children.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output, ended: once(child, "exit") as Promise<[number | null]> };
}

const opens = (link: string): Promise<boolean> => fetch(link).then(({ ok }) => ok, () => false);

needs("script", "the demo stays up on a terminal until a key is pressed, and its links open until then", async () => {
  const { child, output, ended } = startDemo({ onTerminal: true });
  await eventually(() => output().includes(PRESS));
  const link = LINK.exec(output())![1]!;
  expect(await opens(link)).toBe(true);
  child.stdin.write("q");
  expect(await ended).toEqual([0, null]);
  expect(await opens(link)).toBe(false);
});

needs("script", "the demo exits by itself on a terminal with --exit", async () => {
  const { output, ended } = startDemo({ onTerminal: true }, "--exit");
  expect(await ended).toEqual([0, null]);
  expect(output()).toContain(CLOSED);
  expect(output()).not.toContain(PRESS);
});

test("the demo exits by itself without a terminal", async () => {
  const { output, ended } = startDemo({ onTerminal: false });
  expect(await ended).toEqual([0, null]);
  expect(output()).toContain(CLOSED);
});

test("the demo with --keep stays up without a terminal until a signal arrives", async () => {
  const { child, output, ended } = startDemo({ onTerminal: false }, "--keep");
  await eventually(() => output().includes("Ctrl-C stops it."));
  expect(await opens(LINK.exec(output())![1]!)).toBe(true);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  await rm(/Its data stays in (\S+)\.\n/.exec(output())![1]!, { recursive: true });
});

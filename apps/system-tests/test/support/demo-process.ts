import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Main modules of the demos. */
const DEMOS = { demo: "main.ts", benchmark: "benchmark/main.ts", metrics: "metrics/main.ts" } as const;

const children: ChildProcess[] = [];

/** Kills the demos that a test has started. */
export async function killDemos(): Promise<void> {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, "exit");
    process.kill(-child.pid!, "SIGKILL");
    await ended;
  }
}

/**
 * Starts a demo as `npm run demo -- …args` does, either on a terminal of its own (util-linux `script`) or without a
 * terminal.
 */
export function startDemo(
  { name = "demo", onTerminal }: { name?: keyof typeof DEMOS; onTerminal: boolean },
  ...args: string[]
) {
  const path = fileURLToPath(new URL(`../../../standalone/src/demo/${DEMOS[name]}`, import.meta.url));
  const command = [process.execPath, "--conditions=@millwright/source", "--no-warnings", path, ...args];
  const [file, ...rest] = onTerminal ? ["script", "-qefc", command.join(" "), "/dev/null"] : command;
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(file!, rest, { detached: true, stdio: "pipe", env: { PATH, HOME } });
  children.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output, ended: once(child, "exit") as Promise<[number | null]> };
}

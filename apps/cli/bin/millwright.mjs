#!/usr/bin/env node
// Runs the client on the workspace's own Node, whatever Node the shell has.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const pinned = `${root}node_modules/.bin/node`;
const isCurrent = Number(process.versions.node.split(".")[0]) >= 24;
if (!isCurrent && !existsSync(pinned)) {
  process.stderr.write(`millwright needs Node.js 24 or newer (this is ${process.version}).\n`);
  process.exit(1);
}
const node = isCurrent ? process.execPath : pinned;
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

const child = spawn(node, ["--conditions=@millwright/source", "--no-warnings", main, ...process.argv.slice(2)], {
  stdio: "inherit",
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));

// Plain JavaScript without third-party or TypeScript imports: the shell's Node.js may be too old for them.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * Runs a command's main file on the shell's Node.js, or on the workspace's own if the shell's is older than 24. Where
 * the sources are absent, as in an image, runs the compiled file.
 * @param {string} name @param {URL} main
 */
export function launch(name, main) {
  const pinned = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url));
  const isCurrent = Number(process.versions.node.split(".")[0]) >= 24;
  if (!isCurrent && !existsSync(pinned)) {
    process.stderr.write(`${name} needs Node.js 24 or newer (this is ${process.version}).\n`);
    process.exit(1);
  }
  const source = fileURLToPath(main);
  const options = existsSync(source)
    ? ["--conditions=@millwright/source", "--no-warnings", source]
    : [fileURLToPath(new URL("../dist/main.js", main))];
  const child = spawn(isCurrent ? process.execPath : pinned, [...options, ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}

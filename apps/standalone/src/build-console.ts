import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../console/build.mjs", import.meta.url));

/**
 * Builds the console in a child process of low priority if its sources have changed since the last build. Until then
 * the gateway serves a page that reports it. Does nothing in an image, which contains the built console.
 */
export function buildConsole(): void {
  if (!existsSync(SCRIPT)) return;
  const child = spawn(process.execPath, ["--no-warnings", SCRIPT], { stdio: ["ignore", "ignore", "inherit"] });
  child.on("error", (error) => void process.stderr.write(`The console could not be built: ${error.message}\n`));
  child.on("spawn", () => setPriority(child.pid!, constants.priority.PRIORITY_LOW));
  const stop = (): void => void child.kill();
  process.once("exit", stop);
  child.once("exit", () => process.off("exit", stop));
  child.unref();
}

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fetchHelm } from "./helm.ts";
import type { ImageName } from "./image-files.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const VARIABLE = "MILLWRIGHT_DEPLOY_DIRECTORY";

/** The directory of the program that `runIsolated` has started; undefined outside of it. */
export const isolatedDirectory = (): string | undefined => process.env[VARIABLE];

/**
 * Runs a script of this folder again, with a new directory, in network and mount namespaces of its own, in which it may
 * change addresses, names and mounts: once for each list of arguments, until one fails. What needs the network of this
 * machine is prepared before. Returns the last exit code.
 */
export function runIsolated(
  script: string,
  prepare: (directory: string) => void,
  runs: readonly (readonly string[])[] = [process.argv.slice(2)],
): number {
  const directory = mkdtempSync(join(tmpdir(), "millwright-deploy-"));
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
  // Test runs of other process namespaces take each other's owners for ended, and remove their files.
  const program = [
    "sh",
    "-c",
    'mount -t tmpfs tmpfs /dev/shm && exec "$@"',
    "sh",
    process.execPath,
    ...process.execArgv,
  ];
  const temporary = join(directory, "tmp");
  try {
    fetchHelm(4);
    prepare(directory);
    mkdirSync(temporary);
    execFileSync("chmod", ["a+rX", directory]);
    let exitCode = 0;
    for (const args of runs) {
      const { status, error } = spawnSync("unshare", [...namespaces, ...program, script, ...args], {
        stdio: "inherit",
        env: { ...process.env, TMPDIR: temporary, [VARIABLE]: directory },
      });
      if (error) throw error;
      exitCode = status ?? 1;
      if (exitCode !== 0) break;
    }
    return exitCode;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Compiles the apps of a tree and writes the files of its images with its own tools. Returns their directories. */
export function writeImages(directory: string, root = ROOT): Record<ImageName, string> {
  const node = (...args: string[]): void =>
    void execFileSync(process.execPath, ["--no-warnings", ...args], { cwd: root, stdio: "inherit" });
  node("node_modules/typescript/bin/tsc", "-b", ...globSync("apps/*/tsconfig.json", { cwd: root }));
  if (existsSync(join(root, "apps/console/build.mjs"))) node("apps/console/build.mjs");
  const images = imagesOf(directory);
  for (const image of Object.keys(images) as ImageName[]) node("tools/deploy/image-files.ts", image, images[image]);
  execFileSync("chmod", ["-R", "a+rX", directory]);
  return images;
}

export const imagesOf = (directory: string): Record<ImageName, string> => ({
  services: join(directory, "services"),
  worker: join(directory, "worker"),
});

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** The last release. Making a release records it here, by the commit whose tree was released. */
export const PREVIOUS_RELEASE = { version: "0.1.0", commit: "d2cf27294281fde4ee8bbd07eba86e71151efbd2" };

const ROOT = resolve(import.meta.dirname, "../..");

/** Returns why the release's tree cannot be read here, undefined if it can. */
export function missingRelease(): string | undefined {
  const { status } = spawnSync("git", ["cat-file", "-e", `${PREVIOUS_RELEASE.commit}^{commit}`], { cwd: ROOT });
  if (status === 0) return undefined;
  return `the commit of ${PREVIOUS_RELEASE.version} is not in this repository: fetch its whole history`;
}

/**
 * Writes the tree of the last release, its packages and its generated code to a new directory, which must be outside of
 * this tree. Throws an Error if the history does not contain it.
 */
export function writePreviousRelease(directory: string): void {
  const missing = missingRelease();
  if (missing !== undefined) throw new Error(`The previous release cannot be tested: ${missing}.`);
  mkdirSync(directory, { recursive: true });
  const archive = execFileSync("git", ["archive", PREVIOUS_RELEASE.commit], { cwd: ROOT, maxBuffer: 1024 ** 3 });
  execFileSync("tar", ["-x"], { cwd: directory, input: archive });
  const options = ["ci", "--no-audit", "--no-fund", "--prefer-offline"];
  execFileSync("npm", options, { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  const node = join(directory, "node_modules/.bin/node");
  execFileSync(node, ["tools/codegen/generate.mjs"], { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
}

import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";

const NPMRC = resolve(import.meta.dirname, "../../.npmrc");

test("npm ci does not warn about the version of the shell's Node.js", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millwright-install-"));
  try {
    const manifest = { name: "too-new", version: "1.0.0", engines: { node: ">=999" } };
    await cp(NPMRC, join(directory, ".npmrc"));
    await writeFile(join(directory, "package.json"), JSON.stringify(manifest));
    await writeFile(
      join(directory, "package-lock.json"),
      JSON.stringify({ ...manifest, lockfileVersion: 3, packages: { "": manifest } }),
    );
    const ci = (...options: string[]) =>
      promisify(execFile)("npm", ["ci", "--offline", ...options], {
        cwd: directory,
        env: { PATH: process.env["PATH"], HOME: directory },
      });
    expect((await ci()).stderr).toBe("");
    expect((await ci("--loglevel=warn")).stderr).toContain("EBADENGINE");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

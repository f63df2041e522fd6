/**
 * Generates contracts and Prisma clients through nx, whose cache makes a change cheap. Starts no process if no input
 * has changed since the last run, so that `npm start` is fast. Prints nothing unless it fails.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs"; // with named imports, older Node.js versions would fail before the version check
import { dirname, join } from "node:path";

const NODE_MIN = 24;
if (Number(process.versions.node.split(".")[0]) < NODE_MIN) {
  process.stderr.write(
    `Millwright needs Node.js ${NODE_MIN} or newer (this is ${process.version}). On Linux \`npm ci\` installs it; elsewhere install it first.\n`,
  );
  process.exit(1);
}

const { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } = fs;
const root = join(import.meta.dirname, "../..");
const STAMP = join(root, ".nx/generated");
const INPUTS = [
  "proto/**/*.proto",
  "buf*.yaml",
  "apps/*/prisma/schema.prisma",
  "apps/*/prisma.config.ts",
  "package-lock.json",
  "tools/codegen/*",
];

const inputs = globSync(INPUTS, { cwd: root }).sort();
const outputs = [
  "libs/contracts/src/gen",
  ...inputs.filter((path) => path.endsWith("schema.prisma")).map((path) => join(dirname(path), "../src/gen")),
];
const hash = createHash("sha256");
for (const path of inputs) hash.update(`${path}\0`).update(readFileSync(join(root, path)));
const stamp = hash.digest("hex");

const isCurrent =
  existsSync(STAMP) && readFileSync(STAMP, "utf8") === stamp && outputs.every((path) => existsSync(join(root, path)));
if (!isCurrent) {
  const result = spawnSync("npx", ["--no-install", "nx", "run-many", "-t", "generate", "--outputStyle=static"], {
    cwd: root,
    encoding: "utf8",
  });
  if (result.status !== 0) {
    process.stderr.write(`${result.stdout}${result.stderr}`);
    process.exit(result.status ?? 1);
  }
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, stamp);
}

/**
 * Rejects changes of the contracts that would break an upstream service or a worker of the last release (buf breaking,
 * wire and JSON). The contracts of that release are the committed image proto/baseline.binpb.
 *
 *   node tools/checks/proto-breaking.mjs            compare
 *   node tools/checks/proto-breaking.mjs --update   record the current contracts as released; part of making a release
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const BASELINE = "proto/baseline.binpb";
const root = join(import.meta.dirname, "../..");
const isUpdate = process.argv.includes("--update");

if (!isUpdate && !existsSync(join(root, BASELINE))) {
  console.error(`${BASELINE} is missing; restore it from the repository.`);
  process.exit(1);
}
const args = isUpdate ? ["build", "--exclude-source-info", "-o", BASELINE] : ["breaking", "--against", BASELINE];
const { status, error } = spawnSync(join(root, "node_modules/.bin/buf"), args, { cwd: root, stdio: "inherit" });
if (error) console.error(error.message);
process.exitCode = status ?? 1;

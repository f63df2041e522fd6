/**
 * Writes what each workspace package's imports imply: internal `dependencies`, tsconfig `references`, and the same in
 * the lockfile. Third-party packages are declared in the root only. With `--check`, nothing is written, and files that
 * are out of date are reported with exit code 1.
 *
 *   node tools/workspace/sync.mjs [--check] [root]
 *
 * Imports of tests are ignored: they would create cycles in the build graph (libs/testing needs libs/database, whose
 * tests need libs/testing), and they resolve through the workspace links anyway.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { packageOf, readPackages } from "./packages.mjs";

const root = resolve(process.argv.slice(2).find((arg) => !arg.startsWith("--")) ?? join(import.meta.dirname, "../.."));
const isCheck = process.argv.includes("--check");
const packages = readPackages(root);
const byName = new Map(packages.map((pkg) => [pkg.name, pkg]));
/** @type {string[]} */
const stale = [];

/** Entries of the lockfile for workspace packages. */
const locked = {};

for (const pkg of packages) {
  const needed = [...new Set(pkg.files.filter((file) => !file.isTest).flatMap((file) => file.imports.map(packageOf)))]
    .filter((name) => byName.has(name) && name !== pkg.name)
    .sort();
  const dependencies = Object.fromEntries(needed.map((name) => [name, byName.get(name)?.manifest.version]));
  write(`${pkg.dir}/package.json`, withMember(pkg.manifest, "dependencies", dependencies, "nx"));

  const tsconfigPath = `${pkg.dir}/tsconfig.json`;
  const tsconfig = JSON.parse(readFileSync(join(root, tsconfigPath), "utf8"));
  const references = needed.map((name) => ({ path: relative(pkg.dir, byName.get(name)?.dir ?? "") }));
  write(tsconfigPath, { ...tsconfig, references });

  locked[pkg.dir] = withMember(
    { name: pkg.name, version: pkg.manifest.version, ...pick(pkg.manifest, "bin") },
    "dependencies",
    dependencies,
    "bin",
  );
  locked[`node_modules/${pkg.name}`] = { resolved: pkg.dir, link: true };
}
syncLock();

if (isCheck && stale.length > 0) {
  console.error(`Out of date, run \`node tools/workspace/sync.mjs\`:\n  ${stale.join("\n  ")}`);
  process.exitCode = 1;
}

/**
 * Replaces the lockfile's entries of workspace packages as npm would. Entries of third-party packages are unchanged.
 */
function syncLock() {
  if (!existsSync(join(root, "package-lock.json"))) return;
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const isOurs = ([key, entry]) =>
    /^(?:apps|libs)\//.test(key) || (entry.link === true && /^(?:apps|libs)\//.test(entry.resolved));
  const others = Object.entries(lock.packages).filter((entry) => !isOurs(entry));
  const entries = Object.fromEntries(
    [...others, ...Object.entries(locked)].sort(([a], [b]) => a.localeCompare(b, "en")),
  );
  write("package-lock.json", { ...lock, packages: entries });
}

function pick(object, name) {
  return name in object ? { [name]: object[name] } : {};
}

/**
 * Returns the object with `name` set at its present position, or before the first member of `before`, or at the end. An
 * empty value removes the member.
 */
function withMember(object, name, value, ...before) {
  const isEmpty = Object.keys(value).length === 0;
  const entries = Object.entries(object).filter(([key]) => key !== name);
  const oldIndex = Object.keys(object).indexOf(name);
  const index = oldIndex >= 0 ? oldIndex : entries.findIndex(([key]) => before.includes(key));
  if (!isEmpty) entries.splice(index >= 0 ? index : entries.length, 0, [name, value]);
  return Object.fromEntries(entries);
}

/** Writes a file if its content differs. The comparison ignores formatting. */
function write(path, content) {
  const current = JSON.parse(readFileSync(join(root, path), "utf8"));
  if (JSON.stringify(current) === JSON.stringify(content)) return;
  stale.push(path);
  if (!isCheck) writeFileSync(join(root, path), `${JSON.stringify(content, null, 2)}\n`);
}

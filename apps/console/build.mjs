/**
 * Builds the console into `dist/` unless its sources are unchanged since the last build. `index.html` is replaced last,
 * so a server can serve the directory at any time. A failure is recorded in `dist/build-error.txt`.
 *
 *   node apps/console/build.mjs
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const app = import.meta.dirname;
const root = join(app, "../..");
const dist = join(app, "dist");
const STAMP = join(dist, "sources.sha256");
const FAILURE = join(dist, "build-error.txt");
const OLD_ASSET_MS = 7 * 24 * 3_600_000;

execFileSync(process.execPath, ["--no-warnings", join(root, "tools/codegen/console-client.mjs")], { stdio: "inherit" });

const stamp = hashOfSources();
if (!existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  mkdirSync(dist, { recursive: true });
  try {
    await build();
    writeFileSync(STAMP, stamp);
    rmSync(FAILURE, { force: true });
  } catch (error) {
    writeFileSync(FAILURE, String(error));
    throw error;
  }
}

async function build() {
  process.env.NODE_ENV = "production"; // tests that start the build have "test", which bundles React's development build
  const vite = await import("vite");
  removeAbandoned();
  const staged = join(dist, `staged-${process.pid}`);
  await vite.build({ configFile: join(app, "vite.config.mjs"), logLevel: "warn", build: { outDir: staged } });
  const assets = join(dist, "assets");
  mkdirSync(assets, { recursive: true });
  const names = readdirSync(join(staged, "assets"));
  for (const name of names) {
    const path = join(staged, "assets", name);
    compress(path);
    for (const ending of ["", ".br", ".gz"])
      if (existsSync(path + ending)) renameSync(path + ending, join(assets, name + ending));
  }
  renameSync(join(staged, "manifest.json"), join(dist, "manifest.json"));
  renameSync(join(staged, "index.html"), join(dist, "index.html"));
  rmSync(staged, { recursive: true });
  removeOldAssets(assets, names);
}

/** Removes what builds that were killed have left. Several builds can run at the same time. */
function removeAbandoned() {
  for (const name of readdirSync(dist).filter((each) => each.startsWith("staged-"))) {
    try {
      process.kill(Number(name.slice("staged-".length)), 0);
    } catch {
      rmSync(join(dist, name), { recursive: true, force: true });
    }
  }
}

/** Writes the file in both codings beside it. */
function compress(path) {
  const content = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(
    `${path}.br`,
    brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }),
  );
}

/** Removes assets of earlier builds, which pages that were opened before can still load, after a week. */
function removeOldAssets(assets, current) {
  const kept = new Set(current);
  for (const name of readdirSync(assets)) {
    const path = join(assets, name);
    const isOld = Date.now() - statSync(path).mtimeMs > OLD_ASSET_MS;
    if (isOld && !kept.has(name.replace(/\.(?:br|gz)$/, ""))) rmSync(path);
  }
}

function hashOfSources() {
  const hash = createHash("sha256");
  const paths = globSync(["src/**/*", "*.mjs", "index.html"], { cwd: app, exclude: ["**/*.test.ts"] });
  for (const path of paths.filter((each) => statSync(join(app, each)).isFile()).sort())
    hash.update(`${path}\0`).update(readFileSync(join(app, path)));
  for (const path of globSync("libs/terminal/src/*.ts", { cwd: root }).sort())
    hash.update(readFileSync(join(root, path)));
  hash.update(readFileSync(join(root, "package-lock.json")));
  return hash.digest("hex");
}

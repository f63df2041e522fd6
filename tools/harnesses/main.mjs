/**
 * Installs third-party agent programs in tested versions into a cache outside of this repository, and runs the tests
 * that execute them against a model server of the test. No key is needed, and no provider is called.
 *
 *   npm run test:harnesses [-- <options of jest>]
 *
 * MILLWRIGHT_HARNESS_CACHE is the path of the cache, MILLWRIGHT_TEST_TIMEOUT_FACTOR a factor for all timeouts. None of these
 * programs is a dependency of this repository; some are not free software.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Programs to install. `file` is the path of the program below the prefix that its package is installed into. */
const PROGRAMS = [
  {
    variable: "MILLWRIGHT_TEST_CLAUDE",
    name: "@anthropic-ai/claude-code-linux-x64",
    version: "2.1.197",
    program: "claude",
    file: "@anthropic-ai/claude-code-linux-x64/claude",
  },
  {
    variable: "MILLWRIGHT_TEST_CODEX",
    name: "@openai/codex",
    version: "0.169.0",
    program: "codex",
    file: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
  },
  {
    variable: "MILLWRIGHT_TEST_GEMINI",
    name: "@google/gemini-cli",
    version: "0.61.0",
    program: "gemini",
    file: "@google/gemini-cli/bundle/gemini.js",
  },
  {
    variable: "MILLWRIGHT_TEST_OPENCODE",
    name: "opencode-linux-x64",
    version: "1.18.33",
    program: "opencode",
    file: "opencode-linux-x64/bin/opencode",
  },
];

const cache = process.env["MILLWRIGHT_HARNESS_CACHE"] ?? join(homedir(), ".cache", "millwright-harnesses");
const isSupported = process.platform === "linux" && process.arch === "x64";
const env = { ...process.env };

for (const { variable, name, version, program, file } of isSupported ? PROGRAMS : []) {
  const prefix = join(cache, `${program}-${version}`);
  const path = join(prefix, "node_modules", file);
  if (!existsSync(path)) {
    mkdirSync(prefix, { recursive: true });
    execFileSync(
      "npm",
      ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", prefix, `${name}@${version}`],
      { stdio: "inherit" },
    );
  }
  env[variable] = path;
}
if (!isSupported)
  console.log(`There are no programs to install for ${process.platform} on ${process.arch}: the tests are skipped.`);
// Real programs are slow on a busy machine. Tests wait for events and not for fixed times; these timeouts only limit
// tests that hang.
env["MILLWRIGHT_TEST_TIMEOUT_FACTOR"] ??= "10";
const tests = ["apps/worker/test/harnesses", "apps/system-tests/test/harnesses"];
const { status } = spawnSync("npm", ["run", "--silent", "jest", "--", ...tests, ...process.argv.slice(2)], {
  stdio: "inherit",
  env,
});
process.exit(status ?? 1);

/* oxlint-disable jest/no-standalone-expect -- withRelease declares a test */
/* The previous release's code on the schema of this tree: services of both versions share databases during an upgrade. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import { missingRelease, PREVIOUS_RELEASE, writePreviousRelease } from "./previous-release.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TIMEOUT_MS = 900_000 * timeoutFactor();
/** Journeys that use every service. `MILLWRIGHT_PREVIOUS_TESTS` selects others, such as `apps/factories/test`. */
const TESTS = (process.env["MILLWRIGHT_PREVIOUS_TESTS"] ?? "journey automations scorers factory-metrics")
  .split(" ")
  .map((name) => (name.includes("/") ? name : `apps/system-tests/test/${name}.test.ts`));

const missing = process.env["MILLWRIGHT_PREVIOUS"] === "1" ? missingRelease() : "npm run test:previous runs it";
const withRelease = missing === undefined ? test : test.skip;
const directory = mkdtempSync(join(tmpdir(), "millwright-release-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

beforeAll(() => {
  if (missing !== undefined) return;
  writePreviousRelease(directory);
  for (const path of globSync("apps/*/prisma/migrations", { cwd: ROOT })) {
    rmSync(join(directory, path), { recursive: true, force: true });
    cpSync(join(ROOT, path), join(directory, path), { recursive: true });
  }
}, TIMEOUT_MS);

withRelease(
  `${PREVIOUS_RELEASE.version} passes its tests on the schema of this version${missing === undefined ? "" : ` (${missing})`}`,
  async () => {
    const results = join(directory, "results.json");
    const node = join(directory, "node_modules/.bin/node");
    const flags = ["--experimental-vm-modules", "--no-warnings", "--conditions=@millwright/source"];
    const jest = ["node_modules/jest/bin/jest.js", "--json", "--outputFile", results, ...TESTS];
    const child = spawn(node, [...flags, ...jest], { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
    const errors: Buffer[] = [];
    child.stderr.on("data", (data: Buffer) => errors.push(data));
    const [code] = (await once(child, "exit")) as [number | null];
    expect([code, code === 0 ? "" : Buffer.concat(errors).toString().slice(-10_000)]).toEqual([0, ""]);
    const { numPassedTests } = JSON.parse(readFileSync(results, "utf8")) as { readonly numPassedTests: number };
    expect(numPassedTests).toBeGreaterThan(20);
  },
  TIMEOUT_MS,
);

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { geminiGuard } from "./gemini-guard.ts";

const directory = mkdtempSync(join(tmpdir(), "millwright-guard-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** Returns the output of a program that runs behind the guard. */
function guarded(script: string): string {
  const file = join(directory, "program.mjs");
  writeFileSync(file, script);
  return execFileSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(geminiGuard("/state"))}`, file],
    { encoding: "utf8" },
  );
}

/** Returns a program that runs a command in the same way as Gemini CLI and writes its output. */
const running = (command: string): string => `import { spawn } from "child_process";
const child = spawn("bash", ["-c", ${JSON.stringify(command)}], { stdio: ["ignore", "pipe", "pipe"] });
let output = "";
child.stdout.on("data", (data) => (output += data));
child.on("close", () => process.stdout.write(output));`;

test("a long output is cut in the middle", () => {
  const output = guarded(running("printf first; head -c 10000000 /dev/zero | tr '\\0' x; printf last"));
  expect(output).toMatch(/^firstx+\n… 9934473 bytes omitted …\nx+last$/);
  expect(output.length).toBeLessThan(70_000);
});

test.each([
  ["nothing", "true", 0],
  ["a line", "printf 12345", 5],
  ["64 KiB", "head -c 65536 /dev/zero | tr '\\0' y", 65_536],
])("an output of %s stays as it is", (_, command, length) => {
  const output = guarded(running(command));
  expect([output.length, output.includes("omitted")]).toEqual([length, false]);
});

test("settings that a repository brings are not found, those of the user are", () => {
  writeFileSync(join(directory, ".env"), "");
  expect(
    guarded(
      `import { existsSync } from "node:fs"; process.stdout.write(String(existsSync(${JSON.stringify(join(directory, ".env"))})));`,
    ),
  ).toBe("false");
  expect(
    guarded(
      `import { existsSync } from "node:fs"; process.stdout.write(String(existsSync(${JSON.stringify(directory)})));`,
    ),
  ).toBe("true");
});

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";

const MAIN = join(import.meta.dirname, "main.ts");
const dir = mkdtempSync(join(tmpdir(), "millwright-bench-test-"));
const file = join(dir, "there");
writeFileSync(file, "already");
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const run = (...words: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      ["--conditions=@millwright/source", "--no-warnings", MAIN, ...words],
      { cwd: dir },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });

test.each([
  [
    "a file in place of the directory",
    ["--out", file],
    `--out ${file} is not a directory and cannot be created (EEXIST).\n`,
  ],
  [
    "a directory below a file",
    ["--out", join(file, "below")],
    `--out ${join(file, "below")} is not a directory and cannot be created (ENOTDIR).\n`,
  ],
  [
    "a file in place of the data directory",
    ["--data", file, "--out", dir],
    `--data ${file} is not a directory and cannot be created (EEXIST).\n`,
  ],
  ["a limit of zero minutes", ["--minutes", "0"], "--minutes must be a positive number.\n"],
  ["a fraction of a run", ["--runs", "0.5"], "--runs must be a positive integer (got 0.5).\n"],
  [
    "an unknown scenario",
    ["--only", "sleeping"],
    expect.stringMatching(/^Unknown scenario sleeping. Known: work, .*\n$/),
  ],
  [
    "an unknown revision",
    ["--against", "no-such-revision"],
    "--against no-such-revision is not a revision of this repository.\n",
  ],
  [
    "a revision that looks like an option",
    ["--against=--all"],
    "--against --all is not a revision of this repository.\n",
  ],
  ["zero turns", ["--against", "HEAD", "--turns", "0"], "--turns must be a positive integer (got 0).\n"],
  ["an unknown option", ["--outt", dir], expect.stringMatching(/^Unknown option '--outt'[^\n]*\n$/)],
])("%s is rejected with its reason before anything is measured", async (_what, words, stderr) => {
  expect(await run(...words)).toEqual({ code: 2, stdout: "", stderr });
  expect(readFileSync(file, "utf8")).toBe("already");
});

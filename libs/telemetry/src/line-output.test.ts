import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { LineOutput } from "./line-output.ts";

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), "line-output-"))));
afterEach(() => rmSync(dir, { recursive: true }));

const lossOf = (count: number) =>
  expect.stringMatching(new RegExp(`"message":"log lines could not be written and are lost","count":${count}}$`));

test("reports how many lines were lost once writing works again", () => {
  const path = join(dir, "log");
  let isFull = true;
  const output = new LineOutput(() => {
    if (isFull) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    return openSync(path, "a");
  });
  output.write("one\n");
  output.write("two\nthree\n");
  isFull = false;
  output.write("four\n");
  output.write("five\n");
  expect(readFileSync(path, "utf8").split("\n")).toEqual([lossOf(3), "four", "five", ""]);
});

test("begins a new line after one that was written in part", () => {
  const pipe = join(dir, "pipe");
  spawnSync("mkfifo", [pipe]);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  const output = new LineOutput(() => writer);
  output.write(`${"x".repeat(1_000_000)}\n`); // more than a pipe contains
  const chunk = Buffer.alloc(1_000_000);
  const bytes = readSync(reader, chunk);
  expect(bytes).toBeLessThan(1_000_000);
  output.write("next\n");
  const [end, loss, next] = chunk.subarray(0, readSync(reader, chunk)).toString().split("\n");
  expect([end, loss, next]).toEqual(["", lossOf(1), "next"]);
  for (const fd of [reader, writer]) closeSync(fd);
});

test("a process whose standard output is on a full disk completes its work", () => {
  const index = new URL("./index.ts", import.meta.url).href;
  const script = `
    import { writeFileSync } from "node:fs";
    import { createLogger, ignoreStandardStreamErrors } from ${JSON.stringify(index)};
    ignoreStandardStreamErrors(process);
    const log = createLogger({ service: "test" });
    for (let line = 0; line < 100; line++) log.info("a line");
    process.stdout.write("a text");
    setTimeout(() => writeFileSync(process.argv[1], "done"), 10);
  `;
  const full = openSync("/dev/full", "w");
  const marker = join(dir, "marker");
  const args = ["--conditions=@millwright/source", "--no-warnings", "--input-type=module", "-e", script, marker];
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ["ignore", full, "pipe"], encoding: "utf8" });
  closeSync(full);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(readFileSync(marker, "utf8")).toBe("done");
});

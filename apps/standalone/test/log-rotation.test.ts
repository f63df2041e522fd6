import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { rotateLog } from "../src/log-rotation.ts";

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "log-rotation-"));
  path = join(dir, "x.log");
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a log that grew beyond its limit becomes the first of three generations, and its writers continue in the empty file", () => {
  const writer = openSync(path, "a");
  for (const line of ["one", "two", "three", "four", "five"]) {
    writeSync(writer, `${line}\n`);
    rotateLog(path, 3);
  }
  writeSync(writer, "six\n");
  closeSync(writer);
  const contents = Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "utf8")]));
  expect(contents).toEqual({ "x.log": "six\n", "x.log.1": "five\n", "x.log.2": "four\n", "x.log.3": "three\n" });
});

test("a log within its limit, a missing one and a device are not touched", () => {
  writeFileSync(path, "one\n");
  appendFileSync("/dev/null", "one\n");
  for (const file of [path, join(dir, "absent.log"), "/dev/null"]) rotateLog(file, 1_000);
  rotateLog("/dev/null", -1);
  expect(readdirSync(dir)).toEqual(["x.log"]);
  expect(existsSync("/dev/null.1")).toBe(false);
});

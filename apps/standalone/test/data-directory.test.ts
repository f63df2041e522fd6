import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { prepareDataDirectory } from "../src/data-directory.ts";

const PARTS = ["", "blobs", "logs", "postgres", "workers"];

let dir: string;
beforeEach(() => void (dir = join(mkdtempSync(join(tmpdir(), "data-directory-")), "data")));
afterEach(() => rmSync(join(dir, ".."), { recursive: true }));

const modes = () =>
  Object.fromEntries(PARTS.map((part) => [part, (statSync(join(dir, part)).mode & 0o777).toString(8)]));

test("only the owner can enter a new data directory", () => {
  prepareDataDirectory(dir, false);
  expect(modes()).toEqual({ "": "700", blobs: "700", logs: "700", postgres: "700", workers: "700" });
});

test("a platform that runs as root lets other users traverse to the workers' directories only", () => {
  prepareDataDirectory(dir, true);
  expect(modes()).toEqual({ "": "711", blobs: "700", logs: "700", postgres: "700", workers: "711" });
});

test("the modes of a data directory that others can read are corrected", () => {
  for (const part of PARTS) mkdirSync(join(dir, part), { recursive: true, mode: 0o755 });
  prepareDataDirectory(dir, false);
  expect(modes()).toEqual({ "": "700", blobs: "700", logs: "700", postgres: "700", workers: "700" });
});

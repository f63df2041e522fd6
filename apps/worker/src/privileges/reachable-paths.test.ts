import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { reachableView } from "./reachable-paths.ts";

const STRANGER = { uid: 60_599, gid: 60_599 };
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "millwright-view-"));
  chmodSync(root, 0o755);
});
afterEach(() => rmSync(root, { recursive: true }));

const directory = (mode: number, ...names: string[]): string => {
  const path = join(root, ...names);
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
  return path;
};

test("what others reach needs no view", () => {
  expect(reachableView([{ path: directory(0o755, "open", "program") }], STRANGER)).toEqual({ covers: [], paths: [] });
});

test("the topmost directory that others cannot enter is covered, and only what is wanted is put back", () => {
  const home = directory(0o700, "home");
  const program = directory(0o755, "home", "closed", "program");
  directory(0o755, "home", "secrets");
  chmodSync(join(home, "closed"), 0o700);
  expect(reachableView([{ path: program }], STRANGER)).toEqual({ covers: [home], paths: [program] });
});

test("a directory that others cannot list is replaced by its entries", () => {
  const program = directory(0o700, "program");
  writeFileSync(join(program, "main.ts"), "");
  directory(0o755, "program", "node_modules");
  expect(reachableView([{ path: program }], STRANGER)).toEqual({
    covers: [program],
    paths: [join(program, "main.ts"), join(program, "node_modules")],
  });
});

test("the owner's permissions apply to the owner, and missing paths are omitted", () => {
  const own = { uid: process.getuid!(), gid: process.getgid!() };
  expect(reachableView([{ path: directory(0o700, "own") }, { path: join(root, "absent") }], own)).toEqual({
    covers: [],
    paths: [],
  });
});

test("a directory that was given to the user is restored", () => {
  const home = directory(0o700, "home");
  const repositories = directory(0o700, "home", "repositories");
  expect(reachableView([{ path: repositories, willOwn: true }], STRANGER)).toEqual({
    covers: [home],
    paths: [repositories],
  });
});

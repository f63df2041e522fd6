import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "@jest/globals";

const APP = join(import.meta.dirname, "..");
const DIST = join(APP, "dist");
const FIRST_LOAD_BYTES_MAX = 300 * 1024;

type Chunk = {
  readonly file: string;
  readonly isEntry?: boolean;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
};

let manifest: Readonly<Record<string, Chunk>>;
beforeAll(() => {
  execFileSync(process.execPath, ["--no-warnings", join(APP, "build.mjs")], { stdio: "pipe" });
  manifest = JSON.parse(readFileSync(join(DIST, "manifest.json"), "utf8")) as typeof manifest;
});

/** Returns the files that a chunk loads before it runs. */
const filesOf = (name: string): string[] => {
  const chunk = manifest[name]!;
  return [chunk.file, ...(chunk.css ?? []), ...(chunk.imports ?? []).flatMap(filesOf)];
};
const gzippedSize = (files: Iterable<string>): number =>
  [...new Set(files)].reduce((sum, file) => sum + statSync(join(DIST, `${file}.gz`)).size, 0);

test("the first load, with any one page, is below 300 KB compressed", () => {
  const [entry] = Object.keys(manifest).filter((name) => manifest[name]!.isEntry);
  const pages = Object.keys(manifest).filter((name) => /^src\/pages\/.*-page\.tsx$/.test(name));
  expect(pages).not.toEqual([]);
  for (const page of pages)
    expect([page, gzippedSize([...filesOf(entry!), ...filesOf(page)]) < FIRST_LOAD_BYTES_MAX]).toEqual([page, true]);
});

test("the page has no inline script or style and names files of this server only", () => {
  const html = readFileSync(join(DIST, "index.html"), "utf8");
  expect(html).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=/);
  const targets = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target!);
  expect(targets.filter((target) => !/^\/assets\/[\w.-]+$/.test(target))).toEqual([]);
});

test("assets exist in both codings", () => {
  for (const { file } of Object.values(manifest))
    for (const ending of [".br", ".gz"]) expect(statSync(join(DIST, file + ending)).size).toBeGreaterThan(0);
});

import { execFile, execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { IMAGES, writeImageFiles, type ImageName } from "./image-files.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const directory = mkdtempSync(join(tmpdir(), "millwright-image-files-"));

beforeAll(() => {
  execFileSync(
    join(ROOT, "node_modules/typescript/bin/tsc"),
    ["-b", ...globSync("apps/*/tsconfig.json", { cwd: ROOT })],
    {
      cwd: ROOT,
      encoding: "utf8",
    },
  );
  execFileSync(process.execPath, ["--no-warnings", join(ROOT, "apps/console/build.mjs")]);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a program of an image, by default with no configuration, and returns its output. */
async function outputOf(
  image: ImageName,
  app: string,
  words: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const env = { PATH: process.env["PATH"], MILLWRIGHT_DATA_DIR: join(directory, "data"), ...variables };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [`apps/${app}/dist/main.js`, ...words], {
    cwd: join(directory, image),
    env,
  }).catch((error: { readonly stdout: string; readonly stderr: string }) => error);
  return stdout + stderr;
}

describe.each(Object.keys(IMAGES) as ImageName[])("the files of the image %s", (image) => {
  beforeAll(() => writeImageFiles(image, join(directory, image)));

  test("have no sources, types and tests", () => {
    expect(globSync("**/*.{ts,tsbuildinfo,test.js}", { cwd: join(directory, image) })).toEqual([]);
  });

  test.each(IMAGES[image])("start %s, compiled, without sources", async (app) => {
    expect(await outputOf(image, app)).toMatch(/^usage: millwright|Invalid configuration|no embedded PostgreSQL/m);
  });

  test("have the migrations of every app that has a database", () => {
    for (const app of IMAGES[image])
      expect(existsSync(join(directory, image, `apps/${app}/prisma/migrations`))).toBe(
        existsSync(join(ROOT, `apps/${app}/prisma/migrations`)),
      );
  });

  test("have the built console where the gateway is", () => {
    expect(existsSync(join(directory, image, "apps/console/dist/index.html"))).toBe(image === "services");
  });

  test("list each of their npm packages in the bill of materials, and no others", () => {
    const { components } = JSON.parse(readFileSync(join(directory, image, "sbom.cdx.json"), "utf8")) as {
      readonly components: readonly { readonly name: string; readonly version: string; readonly hashes: object[] }[];
    };
    const listed = components.map(({ name, version }) => `${name}@${version}`);
    expect(components.filter(({ hashes }) => hashes.length !== 1)).toEqual([]);
    const installed = globSync(["**/node_modules/*/package.json", "**/node_modules/@*/*/package.json"], {
      cwd: join(directory, image),
    })
      .filter((path) => !path.includes("@millwright/"))
      .map(
        (path) => JSON.parse(readFileSync(join(directory, image, path), "utf8")) as { name: string; version: string },
      )
      .map(({ name, version }) => `${name}@${version}`);
    expect([...new Set(listed)].toSorted()).toEqual([...new Set(installed)].toSorted());
    expect(installed.length).toBeGreaterThan(20);
  });
});

test("the command line client of the image services starts other programs, compiled", async () => {
  const variables = {
    MILLWRIGHT_URL: "http://127.0.0.1:1",
    MILLWRIGHT_WORKER_KEY: "mww_key",
    MILLWRIGHT_WORKER_SLOTS: "x",
  };
  expect(await outputOf("services", "cli", ["worker", "start"], variables)).toMatch(/MILLWRIGHT_WORKER_SLOTS must be/);
});

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "@jest/globals";

const TOOL = join(import.meta.dirname, "sync.mjs");

function repository(files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "sync-"));
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const [path, content] of Object.entries(files)) write(path, content);
  return {
    write,
    read: (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8")),
    run: (...args: string[]) => {
      const { status, stderr } = spawnSync(process.execPath, [TOOL, ...args, root], { encoding: "utf8" });
      return { status, stderr };
    },
  };
}

const FILES = {
  "package-lock.json": JSON.stringify({
    lockfileVersion: 3,
    packages: {
      "": { name: "x" },
      "libs/gone": { name: "@m/gone" },
      "node_modules/@m/gone": { resolved: "libs/gone", link: true },
      "node_modules/pg": { version: "8.0.0" },
    },
  }),
  "apps/shop/package.json": JSON.stringify({ name: "@m/shop", version: "0.1.0", nx: {} }),
  "apps/shop/tsconfig.json": JSON.stringify({ include: ["src"], references: [] }),
  "apps/shop/src/main.ts": 'import pg from "pg";\nimport type { A } from "@m/a/types";\nexport { b } from "@m/b";\n',
  "libs/a/package.json": JSON.stringify({ name: "@m/a", version: "0.2.0" }),
  "libs/a/tsconfig.json": JSON.stringify({ references: [{ path: "../b" }] }),
  "libs/a/src/a.test.ts": 'import { b } from "@m/b";\n',
  "libs/b/package.json": JSON.stringify({ name: "@m/b", version: "0.1.0" }),
  "libs/b/tsconfig.json": JSON.stringify({ references: [] }),
};

test("writes what imports imply: internal dependencies, references and the lockfile, then reports no difference", () => {
  const { run, read } = repository(FILES);
  expect(run("--check")).toMatchObject({ status: 1, stderr: expect.stringContaining("apps/shop/package.json") });
  expect(run().status).toBe(0);
  expect(read("apps/shop/package.json")).toEqual({
    name: "@m/shop",
    version: "0.1.0",
    dependencies: { "@m/a": "0.2.0", "@m/b": "0.1.0" },
    nx: {},
  });
  expect(read("apps/shop/tsconfig.json")).toEqual({
    include: ["src"],
    references: [{ path: "../../libs/a" }, { path: "../../libs/b" }],
  });
  expect(read("package-lock.json")).toMatchObject({
    packages: {
      "": { name: "x" },
      "apps/shop": { name: "@m/shop", version: "0.1.0", dependencies: { "@m/a": "0.2.0", "@m/b": "0.1.0" } },
      "node_modules/@m/shop": { resolved: "apps/shop", link: true },
      "node_modules/pg": { version: "8.0.0" },
    },
  });
  expect(run("--check")).toEqual({ status: 0, stderr: "" });
});

test("what only tests import, and what is no longer there, is left out", () => {
  const { run, read } = repository(FILES);
  run();
  expect(read("libs/a/package.json")).toEqual({ name: "@m/a", version: "0.2.0" });
  expect(read("libs/a/tsconfig.json")).toEqual({ references: [] });
  expect(JSON.stringify(read("package-lock.json"))).not.toContain("gone");
});

test("a dropped import drops its dependency", () => {
  const { run, read, write } = repository(FILES);
  run();
  write("apps/shop/src/main.ts", 'import "@m/b";\n');
  expect(run("--check").status).toBe(1);
  run();
  expect(read("apps/shop/package.json")).toMatchObject({ dependencies: { "@m/b": "0.1.0" } });
  expect(JSON.stringify(read("apps/shop/package.json"))).not.toContain("@m/a");
});

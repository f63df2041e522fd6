import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "@jest/globals";

const TOOL = join(import.meta.dirname, "boundaries.mjs");

const manifest = (name: string, layer: string, over: object = {}) =>
  JSON.stringify({ name: `@millwright/${name}`, version: "0.1.0", nx: { tags: [`layer:${layer}`] }, ...over });

/** A small repository without violations. */
const SOUND: Record<string, string> = {
  "package.json": JSON.stringify({
    dependencies: { pg: "1", "@connectrpc/connect": "1" },
    devDependencies: { jest: "1", ajv: "1" },
  }),
  "apps/shop/package.json": manifest("shop", "app"),
  "apps/shop/src/main.ts": 'import { compose } from "./compose.ts";\ncompose(process.env);\n',
  "apps/shop/src/compose.ts":
    'import { openShop } from "./usecases/open-shop.ts";\nimport { shopStore } from "./store/shop-store.ts";\n',
  "apps/shop/src/domain/shop.ts":
    'import { DomainError } from "@millwright/errors";\nimport { createHash } from "node:crypto";\n',
  "apps/shop/src/usecases/open-shop.ts": 'import type { Shop } from "../domain/shop.ts";\n',
  "apps/shop/src/store/shop-store.ts": 'import pg from "pg";\nimport type { Shop } from "../domain/shop.ts";\n',
  "apps/shop/src/rpc/routes.ts":
    'import { openShop } from "../usecases/open-shop.ts";\nimport { Code } from "@connectrpc/connect";\n',
  "apps/shop/test/shop.test.ts":
    'import { test } from "@jest/globals";\nimport { eventually } from "@millwright/testing";\nimport { shopStore } from "../src/store/shop-store.ts";\n',
  "apps/bank/package.json": manifest("bank", "app"),
  "apps/bank/src/index.ts": '// import { shop } from "@millwright/shop" and process.env in a comment\nexport {};\n',
  "apps/gateway/package.json": manifest("gateway", "app"),
  "apps/gateway/src/compose.ts": 'import { Identity } from "./identity/index.ts";\n',
  "apps/orchestrator/package.json": manifest("orchestrator", "app"),
  "apps/orchestrator/src/compose.ts": 'import { run } from "./runs/domain/run.ts";\n',
  "apps/orchestrator/src/runs/domain/run.ts": 'import type { Model } from "../../catalog/domain/model.ts";\n',
  "apps/orchestrator/src/catalog/domain/model.ts": "export {};\n",
  "apps/gateway/src/identity/compose.ts": 'import { teamStore } from "./store/team-store.ts";\n',
  "apps/gateway/src/identity/store/team-store.ts": 'import { Prisma } from "../../gen/prisma/client.ts";\n',
  "apps/standalone/package.json": manifest("standalone", "app"),
  "apps/standalone/src/compose.ts": 'import { compose } from "@millwright/shop/compose";\n',
  "libs/errors/package.json": manifest("errors", "base"),
  "libs/errors/src/index.ts": "export {};\n",
  "libs/contracts/package.json": manifest("contracts", "base"),
  "libs/contracts/src/index.ts": "export {};\n",
  "libs/rpc/package.json": manifest("rpc", "runtime"),
  "libs/rpc/src/index.ts": 'export * from "@millwright/errors";\n',
  "tools/open/main.ts": 'import { compose } from "@millwright/shop/compose";\nimport { print } from "./print.mjs";\n',
  "tools/open/main.test.ts":
    'import { eventually } from "@millwright/testing";\nimport { shopStore } from "../../apps/shop/src/store/shop-store.ts";\n',
  "libs/testing/package.json": manifest("testing", "test"),
  "libs/testing/src/index.ts": 'import { expect } from "@jest/globals";\nimport { rpc } from "@millwright/rpc";\n',
};

function check(changes: Record<string, string>): string[] {
  const root = mkdtempSync(join(tmpdir(), "boundaries-"));
  for (const [path, content] of Object.entries({ ...SOUND, ...changes })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  const { status, stderr } = spawnSync(process.execPath, [TOOL, root], { encoding: "utf8" });
  const lines = stderr.split("\n").filter(Boolean);
  expect(status).toBe(lines.length > 0 ? 1 : 0);
  return lines;
}

test("accepts a repository without violations", () => expect(check({})).toEqual([]));

test.each([
  [
    "an app importing an app",
    "apps/bank/src/x.ts",
    'import { shop } from "@millwright/shop";',
    "imports the app @millwright/shop",
  ],
  [
    "standalone importing more than a compose",
    "apps/standalone/src/x.ts",
    'export { x } from "@millwright/shop";',
    "imports the app",
  ],
  [
    "a base library importing a runtime one",
    "libs/contracts/src/x.ts",
    'import { rpc } from "@millwright/rpc";',
    "layer:base must not import layer:runtime",
  ],
  ["a library importing an app", "libs/rpc/src/x.ts", 'await import("@millwright/shop");', "imports the app"],
  [
    "the product importing libs/testing",
    "apps/shop/src/x.ts",
    'import { eventually } from "@millwright/testing";',
    "which is for tests",
  ],
  [
    "a relative import that leaves its package",
    "apps/shop/src/x.ts",
    'import "../../bank/src/index.ts";',
    "leaves its package",
  ],
  [
    "a tool that imports a file of an app",
    "tools/open/x.mjs",
    'import { shopStore } from "../../apps/shop/src/store/shop-store.ts";',
    "leaves tools/",
  ],
  [
    "a tool that imports more of an app than its entry points",
    "tools/open/x.ts",
    'import { shop } from "@millwright/shop";',
    "tools import /compose and /config of apps only",
  ],
  [
    "a tool that imports test support",
    "tools/open/x.ts",
    'import { eventually } from "@millwright/testing";',
    "which is for tests",
  ],
  ["an import without its ending", "apps/shop/src/x.ts", 'import "./compose";', "with its ending"],
  ["an undeclared package", "apps/shop/src/x.ts", 'import _ from "lodash";', "which the root does not declare"],
  [
    "a development dependency in the product",
    "apps/shop/src/x.ts",
    'import Ajv from "ajv";',
    "a development dependency",
  ],
  [
    "a domain rule that reads files",
    "apps/shop/src/domain/x.ts",
    'import { readFile } from "node:fs/promises";',
    "domain/ is pure",
  ],
  [
    "a domain rule that imports the contracts",
    "apps/shop/src/domain/x.ts",
    'import { rpc } from "@millwright/contracts";',
    "domain/ is pure",
  ],
  [
    "a domain rule that imports a store",
    "apps/shop/src/domain/x.ts",
    'import { shopStore } from "../store/shop-store.ts";',
    "domain/ is pure",
  ],
  [
    "a use case that imports an RPC handler",
    "apps/shop/src/usecases/x.ts",
    'import type { S } from "../rpc/routes.ts";',
    "not wire formats",
  ],
  [
    "a use case that imports Connect",
    "apps/shop/src/usecases/x.ts",
    'import { Code } from "@connectrpc/connect";',
    "not wire formats",
  ],
  [
    "an RPC handler that imports Prisma",
    "apps/shop/src/rpc/x.ts",
    'import { Prisma } from "../gen/prisma/client.ts";',
    "SQL and Prisma live in store/",
  ],
  [
    "a store that imports a use case",
    "apps/shop/src/store/x.ts",
    'import { openShop } from "../usecases/open-shop.ts";',
    "domain types and the database only",
  ],
  [
    "a module that imports a module above it",
    "apps/orchestrator/src/catalog/usecases/x.ts",
    'import type { Run } from "../../runs/domain/run.ts";',
    "the module catalog may import storage",
  ],
  [
    "a module that imports a file of no module",
    "apps/orchestrator/src/storage/store/x.ts",
    'import { settings } from "../../settings.ts";',
    "the module storage may import none",
  ],
  [
    "a rule of a module that imports a store of another module",
    "apps/orchestrator/src/runs/domain/x.ts",
    'import { modelStore } from "../../catalog/store/model-store.ts";',
    "domain/ is pure",
  ],
  [
    "a closed module that imports another folder of its app",
    "apps/gateway/src/identity/usecases/x.ts",
    'import { clock } from "../../compose-clock.ts";',
    "identity/ imports nothing else of its app",
  ],
  [
    "a route that imports a file of a closed module other than its index.ts",
    "apps/gateway/src/routes/x.ts",
    'import { getTeam } from "../identity/store/team-store.ts";',
    "of identity/ the rest of the app imports index.ts only",
  ],
  [
    "a store of a closed module that imports a use case of it",
    "apps/gateway/src/identity/store/x.ts",
    'import { createTeam } from "../usecases/create-team.ts";',
    "domain types and the database only",
  ],
  [
    "an RPC handler that imports compose.ts",
    "apps/shop/src/rpc/x.ts",
    'import { compose } from "../compose.ts";',
    "by main.ts and tests only",
  ],
  [
    "an RPC handler that reads the environment",
    "apps/shop/src/rpc/x.ts",
    "export const url = process.env.URL;",
    "reads process.env",
  ],
  [
    "a package without a layer",
    "libs/errors/package.json",
    JSON.stringify({ name: "@millwright/errors" }),
    "exactly one known layer tag",
  ],
  [
    "a package with its own third-party dependency",
    "libs/errors/package.json",
    manifest("errors", "base", { dependencies: { pg: "1" } }),
    "declared in the root only",
  ],
])("reports %s", (_, path, content, expected) =>
  expect(check({ [path]: `${content}\n` })).toEqual([expect.stringContaining(expected)]),
);

test("reports the path of a cycle between packages; test files may close one", () => {
  expect(
    check({
      "libs/errors/src/x.ts": 'import "@millwright/contracts";',
      "libs/contracts/src/x.ts": 'import "@millwright/errors";',
    }),
  ).toEqual([expect.stringContaining("@millwright/errors → @millwright/contracts → @millwright/errors")]);
  expect(check({ "libs/rpc/test/x.test.ts": 'import "@millwright/testing";' })).toEqual([]);
});

test.each([
  ["values", 'import { b } from "./b.ts";', 'import { a } from "./a.ts";'],
  ["types", 'import type { B } from "./b.ts";', 'export type { A } from "./a.ts";'],
])("a cycle of files that import %s is rejected with its path; tests may form one", (_, a, b) => {
  const shop = "apps/shop/src/domain";
  expect(check({ [`${shop}/a.ts`]: `${a}\n`, [`${shop}/b.ts`]: `${b}\n` })).toEqual([
    `${shop}/a.ts: import cycle ${shop}/a.ts → ${shop}/b.ts → ${shop}/a.ts`,
  ]);
  expect(check({ "apps/shop/test/a.ts": `${a}\n`, "apps/shop/test/b.ts": `${b}\n` })).toEqual([]);
});

import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "@jest/globals";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(resolve(root, path), "utf8");

/** The files that the README names for `POST /agent/runs`, in order. */
const paragraph = /From URL to SQL are four files, for `POST \/agent\/runs`:[\s\S]*?follows them\./.exec(
  read("README.md"),
);
const named = Array.from(paragraph?.[0].matchAll(/\]\(([^)]+)\)/g) ?? [], ([, path]) => path!);

/** Returns the paths from which a file imports a name as a value, relative to the root. */
const importsOf = (path: string, name: string): string[] =>
  Array.from(read(path).matchAll(/import \{([^}]*)\} from "([^"]+)";/g))
    .filter(([, names]) => names!.split(",").some((one) => one.trim() === name))
    .map(([, , from]) => join(path, "..", from!));

test("the README names a route, an RPC handler, a use case and a store", () =>
  expect(named.map((path) => path.split("/").slice(-2, -1)[0])).toEqual([
    "runs",
    "rpc",
    "usecases",
    "store",
    "checks",
  ]));

test("each file calls the next one", () => {
  const [route, rpc, usecase, store] = named as [string, string, string, string];
  expect(read(route)).toContain('createRun("/agent/runs")');
  expect(read(route)).toMatch(/upstreams: \{ runs\b/);
  expect(read(route)).toContain("await runs.createRuns({");
  expect(read(rpc)).toMatch(/async createRuns\([^)]*\) \{/);
  expect(read(rpc)).toContain("await createRuns(deps, callerOf(context)");
  expect(importsOf(rpc, "createRuns")).toEqual([usecase]);
  expect(read(usecase)).toContain("export async function createRuns(");
  expect(read(usecase)).toContain("tx.insertRuns(");
  expect(read(store)).toContain("export async function insertRuns(");
  expect(read(store)).toMatch(/INSERT INTO runs\b/);
});

test("the transaction of the use case has the function of the store, not another one of that name", () => {
  const [, , usecase, store] = named as [string, string, string, string];
  const transaction = join(store, "../run-transaction.ts");
  expect(read(usecase)).toMatch(
    /import type \{[^}]*\bRunTransaction\b[^}]*\} from "\.\.\/store\/run-transaction\.ts";/,
  );
  expect(read(transaction)).toContain('import * as createStore from "./create-store.ts";');
  expect(read(transaction)).toContain("  ...createStore,\n");
  const mentioning = globSync("apps/orchestrator/src/**/*.ts", { cwd: root }).filter((path) =>
    /\binsertRuns\b/.test(read(path)),
  );
  expect(mentioning.toSorted()).toEqual([store, usecase].toSorted());
});

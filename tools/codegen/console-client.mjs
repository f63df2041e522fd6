/**
 * Generates the types of the console's API client from the gateway's OpenAPI document, without a running platform.
 * Does nothing if the gateway's sources are unchanged since the last run. Prints nothing unless it fails.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const STAMP = join(root, ".nx/console-client");
const OUTPUT = join(root, "apps/console/src/gen/api.ts");
const INPUTS = [
  "apps/gateway/src/**/*.ts",
  "libs/*/src/**/*.ts",
  "package-lock.json",
  "tools/codegen/console-client.mjs",
];

const hash = createHash("sha256");
for (const path of globSync(INPUTS, { cwd: root, exclude: ["**/gen/**", "**/*.test.ts"] }).sort())
  hash.update(`${path}\0`).update(readFileSync(join(root, path)));
const stamp = hash.digest("hex");

if (!existsSync(OUTPUT) || !existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  // openapi-typescript calls the compiler API of TypeScript 5, which TypeScript 7 does not have
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === "typescript" ? "typescript-api" : specifier, context),
  });
  const { default: openapiTs, astToString } = await import("openapi-typescript");
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@millwright/source", "--no-warnings", "apps/gateway/src/print-openapi.ts"],
    { cwd: root, maxBuffer: 64 * 1024 ** 2 },
  );
  mkdirSync(dirname(OUTPUT), { recursive: true });
  writeFileSync(
    OUTPUT,
    astToString(await openapiTs(stdout, { rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true })),
  );
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, stamp);
}

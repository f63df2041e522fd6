// Runs the Prisma command line in one app, offline: npx -c 'node tools/database/prisma.mjs apps/factories migrate
// status' (with DATABASE_URL). The CLI requires a native engine and would download it; schema-engine.mjs replaces it.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = import.meta.dirname;

/** Runs one command in an app's directory. Returns its exit status and its output. */
export function prisma(appDir, args, environment = {}, stdio = "pipe") {
  const cli = join(dirname(createRequire(import.meta.url).resolve("prisma/package.json")), "build/index.js");
  const result = spawnSync(process.execPath, [cli, ...args], {
    cwd: appDir,
    encoding: "utf8",
    stdio,
    env: {
      ...process.env,
      ...environment,
      PATH: dirname(process.execPath) + delimiter + process.env.PATH, // the engine's script runs on this Node.js
      PRISMA_SCHEMA_ENGINE_BINARY: join(here, "schema-engine.mjs"),
      PRISMA_HIDE_UPDATE_MESSAGE: "1",
      CHECKPOINT_DISABLE: "1",
    },
  });
  return { status: result.status ?? 1, output: `${result.stdout ?? ""}${result.stderr ?? ""}` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [appDir = ".", ...args] = process.argv.slice(2);
  process.exit(prisma(resolve(appDir), args, {}, "inherit").status);
}

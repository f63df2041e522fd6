import { accessSync, constants, mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  checkDatabase,
  checkFiles,
  checkNats,
  checkSandbox,
  checkServices,
  describeFindings,
  isFailed,
  type Finding,
} from "@millwright/preflight";
import type { Command } from "../command.ts";
import { dataDirectoryOf, hasEmbeddedServer, withPlatform } from "../platform.ts";

/** Default number of connections that each service opens, if DATABASE_POOL is not set. */
const POOL = 10;

export const doctor: Command = {
  words: "doctor",
  args: [],
  options: { "--json": "print the checks as JSON" },
  summary: "Checks what the platform needs: every database, the clock, NATS, files, the sandbox and named services.",
  details: [
    "Checks what the environment of npm start names, before the first start, too.",
    "<SERVICE>_URL: the addresses of separate processes.",
    "In the environment of one service or worker, run: millwright doctor",
  ],
  async run({ env, print }, _args, values) {
    const findings = await inspectPlatform(env);
    print(values["json"] === true ? JSON.stringify(findings, null, 2) : describeFindings(findings));
    return !findings.some(isFailed);
  },
};

/** Returns what the checks of the whole platform find. Never rejects. */
export async function inspectPlatform(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const nats = env["MILLWRIGHT_NATS_URL"] ?? env["NATS_URL"];
  const isBucket = Boolean(env["MILLWRIGHT_BLOB_URL"] || env["BLOB_DIR"]);
  const found = await Promise.all([
    checkDatabases(env),
    nats ? checkNats(nats) : [],
    checkFiles(isBucket || !hasEmbeddedServer(env) ? env : { BLOB_DIR: join(dataDirectoryOf(env), "blobs") }),
    env["MILLWRIGHT_SANDBOX"] === "none" || env["MILLWRIGHT_WORKERS"] === "0" ? [] : checkSandbox(env["PATH"]),
    checkServices(env),
  ]);
  return [...checkDataDirectory(env), ...found.flat()];
}

async function checkDatabases(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const isNamed = Object.keys(env).some((name) => name.endsWith("_DATABASE_URL") && env[name]);
  if (!isNamed && !hasEmbeddedServer(env)) return []; // the first start creates the databases
  const { MILLWRIGHT_DATABASE_URL: server } = env;
  try {
    return await withPlatform(env, async (databases) => {
      const found = await Promise.all([
        server ? checkDatabase(server, { createsDatabases: true, extensions: ["pg_trgm"] }) : [],
        ...Object.entries(databases).map(([service, url]) =>
          checkDatabase(url, {
            connections: POOL,
            extensions: service === "orchestrator" ? ["pg_trgm"] : [],
            mayBeAbsent: server !== undefined,
          }),
        ),
      ]);
      return found.flat();
    });
  } catch (error) {
    return [
      {
        check: "database",
        address: server ? "MILLWRIGHT_DATABASE_URL" : isNamed ? "<SERVICE>_DATABASE_URL" : dataDirectoryOf(env),
        problem: (error as Error).message,
        remedy: isNamed
          ? "Correct the database URLs."
          : "Read the log of the server: postgres/postgres.log in the data directory.",
      },
    ];
  }
}

function checkDataDirectory(env: NodeJS.ProcessEnv): Finding[] {
  if (env["MILLWRIGHT_DATABASE_URL"] || env["GATEWAY_DATABASE_URL"]) return [];
  const address = dataDirectoryOf(env);
  const ok = { check: "data directory", address, problem: null, remedy: null };
  try {
    mkdirSync(address, { recursive: true, mode: 0o700 });
    accessSync(address, constants.R_OK | constants.W_OK | constants.X_OK);
    return [ok];
  } catch (error) {
    return [
      {
        ...ok,
        problem: (error as Error).message,
        remedy: "Make the directory writable by this user, or set MILLWRIGHT_DATA_DIR.",
      },
    ];
  }
}

#!/usr/bin/env node
// Replaces Prisma's native schema engine, which would be downloaded. Serves the same JSON-RPC over standard input and
// output, with the WebAssembly build of the engine and adapter-pg. It depends on an internal protocol of the pinned
// Prisma version: run tools/database/drift.test.ts after every change of that version. SE_DEBUG=1 prints all messages.
/* oxlint-disable no-underscore-dangle -- names that wasm-bindgen chose */
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from "@prisma/driver-adapter-utils";
import { Client, escapeIdentifier } from "pg";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  strict: false,
  allowPositionals: true,
  options: {
    datamodels: { type: "string", multiple: true, short: "d" },
    datasource: { type: "string" },
    "enabled-preview-features": { type: "string" },
    "extension-types": { type: "string" },
  },
});
const url = new URL(JSON.parse(values.datasource ?? "{}").url || "postgresql://localhost/none");

/** Executes the engine's one-shot commands. */
async function answerCommand(command) {
  try {
    if (command === "can-connect-to-database") return await withClient(url, () => {});
    if (command !== "create-database") return fail("P1000", `unsupported: ${positionals.join(" ")}`);
    const admin = new URL(url);
    admin.pathname = "/postgres";
    await withClient(admin, (db) => db.query(`CREATE DATABASE ${escapeIdentifier(databaseOf(url))}`));
  } catch (error) {
    fail(error.code === "3D000" ? "P1003" : "P1001", error.message);
  }
}

function fail(code, message) {
  const fields = { error_code: code, message };
  process.stderr.write(
    `\n${JSON.stringify({ level: "ERROR", target: "schema_engine::logger", fields, timestamp: new Date().toISOString() })}`,
  );
  process.exit(1);
}

async function withClient(target, f) {
  const db = new Client({ connectionString: target.href });
  await db.connect();
  try {
    await f(db);
  } finally {
    await db.end();
  }
}

async function createEngine() {
  globalThis.PRISMA_WASM_PANIC_REGISTRY = {
    message: "",
    set_message(message) {
      this.message = message;
    },
  };
  const glueUrl = import.meta.resolve("@prisma/schema-engine-wasm/schema_engine_bg");
  const glue = await import(glueUrl);
  const wasm = readFileSync(fileURLToPath(glueUrl).replace(/\.js$/, ".wasm"));
  const { instance } = await WebAssembly.instantiate(wasm, { "./schema_engine_bg.js": glue });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start?.();
  const datamodels = values.datamodels?.map((path) => [path, readFileSync(path, "utf8")]);
  const log = (line) => process.env.SE_DEBUG && console.error(line);
  return glue.SchemaEngine.new({ datamodels }, log, bindMigrationAwareSqlAdapterFactory(adapterFactory()));
}

function adapterFactory() {
  // Separate fields instead of connectionString, which would take precedence over `database`, so that the shadow
  // database would be the real one.
  const config = {
    host: url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: databaseOf(url),
    Client: TextForChar,
  };
  return new (class extends PrismaPg {
    async connect() {
      return corrected(await super.connect());
    }
    async connectToShadowDb() {
      const name = `prisma_migrate_shadow_db_${crypto.randomUUID()}`;
      const admin = await this.connect();
      await admin.executeScript(`CREATE DATABASE "${name}"`);
      const shadow = corrected(await new PrismaPg({ ...config, database: name }).connect());
      const dispose = shadow.dispose.bind(shadow);
      shadow.dispose = async () => {
        await dispose();
        await admin.executeScript(`DROP DATABASE "${name}"`);
        await admin.dispose();
      };
      return shadow;
    }
  })(config);
}

/**
 * Corrects the behaviour of adapter-pg where it differs from the native connector in a way that the engine does not
 * support.
 */
function corrected(adapter) {
  // adapter-pg splits a script at every semicolon, including those in comments and function bodies. PostgreSQL executes
  // the whole script.
  adapter.executeScript = async (script) => {
    await adapter.client.query(script).catch((error) => adapter.onError(error));
  };
  // The engine crashes if a check constraint's type is a text instead of a character.
  const queryRaw = adapter.queryRaw.bind(adapter);
  adapter.queryRaw = async (query) => {
    const result = await queryRaw(query);
    const at = result.columnNames.indexOf("constraint_type");
    if (at >= 0) result.columnTypes[at] = ColumnTypeEnum.Character;
    return result;
  };
  return adapter;
}

class TextForChar extends Client {
  query(...args) {
    const callback = args.at(-1);
    if (typeof callback !== "function") return super.query(...args)?.then?.(withTextForChar);
    return super.query(...args.slice(0, -1), (error, results) => callback(error, withTextForChar(results)));
  }
}

/** Declares the one-byte type "char" (oid 18, array 1002) as text, because adapter-pg does not support it. */
function withTextForChar(results) {
  for (const field of [results].flat().flatMap((result) => result?.fields ?? [])) {
    field.dataTypeID = { 18: 25, 1002: 1009 }[field.dataTypeID] ?? field.dataTypeID;
  }
  return results;
}

async function serve(engine) {
  const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let printId = 1_000_000;
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (!method) continue; // a response to a print request
    if (process.env.SE_DEBUG) console.error(">>", line);
    try {
      const result = await engine[method === "getDatabaseVersion" ? "version" : method](params);
      if (method === "diff" && result?.stdout)
        send({ id: printId++, method: "print", params: { content: result.stdout } });
      send({ id, result: result ?? null });
    } catch (error) {
      const data = {
        is_panic: false,
        message: error?.message ?? String(error),
        meta: error?.meta ?? null,
        error_code: error?.code ?? null,
      };
      send({ id, error: { code: 4466, message: "An error happened. Check the data field for details.", data } });
    }
  }
}

function databaseOf(target) {
  return decodeURIComponent(target.pathname.slice(1));
}

if (positionals[0] === "cli") await answerCommand(positionals[1]);
else await serve(await createEngine());
process.exit(0);

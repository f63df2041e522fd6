import { createReadStream, createWriteStream, existsSync, readdirSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { ensureDatabase, migrate } from "@millwright/database";
import type { BlobStore } from "@millwright/blobs";
import { endAll, openSnapshots } from "../backup/snapshots.ts";
import { readDump, writeDump } from "../backup/dump.ts";
import { openBlobs } from "../blobs.ts";
import { UsageError, type Command } from "../command.ts";
import { valuesOf, withClient } from "../databases.ts";
import { migrationsOf, servicesWithDatabase, withPlatform } from "../platform.ts";

const MANIFEST = "manifest.json";
const FORMAT = 1;
const FOLDERS = ["artifacts", "attachments", "blocks", "snapshots", "transcripts", "uploads"];
const NO_FILES = { "--no-files": "leave files out: the bucket or directory has a backup of its own" };

type Manifest = {
  readonly format: number;
  readonly createdAt: string;
  /** Identifier of the master key that decrypts the secrets. */
  readonly masterKeyId: string | null;
  readonly rows: number;
  /** Null: left out. */
  readonly files: number | null;
};

export const backup: Command = {
  words: "backup",
  args: ["DIRECTORY"],
  options: NO_FILES,
  summary: "Backs up the databases of all services, of one instant, and the files, while the platform serves.",
  details: [
    "Works with every PostgreSQL server. Large platforms back up the server itself: docs/operations/backup.md.",
    "The master key is not part of the backup: store a copy of it in another place.",
  ],
  async run({ env, print }, [directory = ""], values) {
    const target = resolve(directory);
    if (existsSync(target) && readdirSync(target).length > 0) throw new UsageError(`${target} is not empty.`);
    const draft = `${target}.partial`;
    await mkdir(draft, { recursive: true, mode: 0o700 });
    try {
      await withPlatform(env, async (databases) => {
        const createdAt = new Date().toISOString();
        const snapshots = await openSnapshots(databases);
        try {
          let rows = 0;
          for (const [service, db] of snapshots) rows += await writeDump(db, join(draft, "databases", service));
          const [masterKeyId = null] = await valuesOf(
            snapshots.get("gateway")!,
            "SELECT key_id AS value FROM master_key",
          );
          const files = values["files"] === false ? null : await saveFiles(openBlobs(env), join(draft, "files"));
          const manifest: Manifest = { format: FORMAT, createdAt, masterKeyId, rows, files };
          await writeFile(join(draft, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
          print(`Backup      ${target} (${rows} rows, ${files === null ? "without files" : `${files} files`})`);
          print(`Master key  ${masterKeyId ?? "none"}: the secrets can be read with this key only`);
        } finally {
          await endAll(snapshots.values());
        }
      });
      await rm(target, { recursive: true, force: true });
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
  },
};

export const restore: Command = {
  words: "restore",
  args: ["DIRECTORY"],
  options: NO_FILES,
  summary: "Loads a backup into empty databases, which are created on MILLWRIGHT_DATABASE_URL, and writes its files.",
  details: [
    "No service may run. Use the release that made the backup, then start it with the backup's master key.",
    "Interrupted, drop the databases and run it again.",
  ],
  async run({ env, print }, [directory = ""], values) {
    const source = resolve(directory);
    if (!existsSync(join(source, MANIFEST))) throw new UsageError(`${source} is not a complete backup.`);
    const manifest = JSON.parse(await readFile(join(source, MANIFEST), "utf8")) as Manifest;
    if (manifest.format !== FORMAT)
      throw new Error(`The backup has format ${manifest.format}; this release reads format ${FORMAT}.`);
    const { MILLWRIGHT_DATABASE_URL: server } = env;
    if (server)
      for (const service of servicesWithDatabase())
        await ensureDatabase(new URL("/postgres", server).href, `millwright_${service}`);
    let rows = 0;
    await withPlatform(env, async (databases) => {
      for (const [service, url] of Object.entries(databases)) {
        await migrate(url, migrationsOf(service));
        rows += await withClient(url, (db) => readDump(db, join(source, "databases", service)));
      }
    });
    const isWithFiles = manifest.files !== null && values["files"] !== false;
    const files = isWithFiles ? await loadFiles(join(source, "files"), openBlobs(env)) : 0;
    print(`Restored    ${source} of ${manifest.createdAt} (${rows} rows, ${files} files)`);
    print(`Master key  ${manifest.masterKeyId ?? "none"}`);
  },
};

/**
 * Copies every stored file, after the databases: the platform removes a file at least an hour after the row that names
 * it, so each file of the snapshots is still there.
 */
async function saveFiles(blobs: BlobStore, target: string): Promise<number> {
  let count = 0;
  for (const folder of FOLDERS)
    for await (const { key } of blobs.list(folder)) {
      const blob = await blobs.get(key);
      if (!blob) continue;
      const path = join(target, key);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(`${path}.type`, blob.contentType, { mode: 0o600 });
      await pipeline(blob.body, createWriteStream(`${path}.content`, { mode: 0o600 }));
      count += 1;
    }
  return count;
}

async function loadFiles(source: string, blobs: BlobStore): Promise<number> {
  let count = 0;
  const entries = existsSync(source) ? await readdir(source, { withFileTypes: true, recursive: true }) : [];
  for (const entry of entries.filter(({ name }) => name.endsWith(".content"))) {
    const path = join(entry.parentPath, entry.name).replace(/\.content$/, "");
    const contentType = await readFile(`${path}.type`, "utf8");
    await blobs.put(relative(source, path), createReadStream(`${path}.content`), { contentType });
    count += 1;
  }
  return count;
}

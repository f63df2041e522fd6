// millwright backup DIR [--key-file FILE] · millwright restore BACKUP [--key-file FILE]: backs up and restores the
// platform that `npm start` starts with the same environment.
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadConfig } from "../config.ts";
import { createBackup } from "./create-backup.ts";
import { restoreBackup } from "./restore-backup.ts";

const { positionals, values } = parseArgs({ allowPositionals: true, options: { "key-file": { type: "string" } } });
const [command = "", directory = ""] = positionals;
const named = values["key-file"];
const { XDG_CONFIG_HOME, HOME = "." } = process.env;
/**
 * Returns the default path of the key copy: outside of the data directory and of backups, named by the key's
 * identifier.
 */
const usualKeyFile = (keyId: string): string =>
  join(XDG_CONFIG_HOME ?? join(HOME, ".config"), "millwright", "keys", `${keyId}.key`);

const print = (...lines: string[]): void => void process.stdout.write(`${lines.join("\n")}\n`);
const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

try {
  const config = loadConfig(process.env);
  if (config.databaseUrl !== undefined) {
    throw new Error(
      "The databases of this platform are on a PostgreSQL server of yours (MILLWRIGHT_DATABASE_URL). Use " +
        "millwright-admin backup, or a backup of that server with all databases of one instant: docs/operations/backup.md.",
    );
  }
  const usesBucket = config.blobUrl !== undefined;
  if (command === "backup") await backup(config.dataDir, usesBucket);
  else await restore(config.dataDir, usesBucket);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}

async function backup(dataDir: string, usesBucket: boolean): Promise<void> {
  const keyFile = (keyId: string): string => named ?? usualKeyFile(keyId);
  const made = await createBackup({ dataDir, destination: resolve(directory), keyFile, usesBucket, now: new Date() });
  print(`Backup      ${made.path} (${made.files} files, ${megabytes(made.bytes)})`, `Master key  ${made.keyFile}`);
  print(
    "The secrets in the backup can be read with this key only. Store a copy of the key away from this machine and from the backup.",
  );
  if (usesBucket) print("Files of runs are in the bucket (MILLWRIGHT_BLOB_URL) and not part of the backup.");
}

async function restore(dataDir: string, usesBucket: boolean): Promise<void> {
  const keyFiles = (keyId: string): string[] => (named === undefined ? [usualKeyFile(keyId)] : [resolve(named)]);
  const { path, manifest } = await restoreBackup({ dataDir, source: directory, keyFiles });
  print(`Restored    ${path}`, `            of ${manifest.createdAt}`, `Directory   ${dataDir}`);
  if ((manifest.blobs === "bucket") !== usesBucket) {
    print(
      manifest.blobs === "bucket"
        ? "Files of runs are in a bucket: set MILLWRIGHT_BLOB_URL."
        : "The backup contains files of runs: start the platform without MILLWRIGHT_BLOB_URL, or copy them to the bucket.",
    );
  }
  print("Start the platform with: npm start");
}

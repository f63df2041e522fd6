import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { copyFileDurably, EmbeddedPostgres, takeBaseBackup } from "@millwright/database";
import { masterKeyId, readKeyFile } from "@millwright/vault";
import { DataDirectoryLocked, lockDataDirectory } from "../instance-lock.ts";
import { masterKeyFile } from "../master-key.ts";
import { copyTree, sizeOfTree, type TreeSize } from "./copy-tree.ts";
import { isWithin, storeKey } from "./key-copy.ts";
import { backupName, writeManifest } from "./manifest.ts";

export type BackupOptions = {
  readonly dataDir: string;
  /** Directory that contains the backups; created if missing. */
  readonly destination: string;
  /** Returns the path of the copy of the master key, by the key's identifier. It must be outside of the backup. */
  readonly keyFile: (keyId: string) => string;
  readonly usesBucket: boolean;
  readonly now: Date;
};

export type CreatedBackup = TreeSize & { readonly path: string; readonly keyFile: string };

/**
 * Backs up a standalone platform, running or stopped: all databases at one point in time, and the files of runs. The
 * backup is readable by its owner only, and ignored by git. The master key is copied to a separate place.
 *
 * Errors: a plain Error with the cause; an incomplete backup is deleted.
 */
export async function createBackup({
  dataDir,
  destination,
  usesBucket,
  now,
  ...options
}: BackupOptions): Promise<CreatedBackup> {
  const pgData = join(dataDir, "postgres", "cluster");
  if (!existsSync(join(pgData, "PG_VERSION")))
    throw new Error(`There is no platform in ${dataDir}. Set MILLWRIGHT_DATA_DIR to its data directory.`);
  if (isWithin(dataDir, resolve(destination)))
    throw new Error(`The backup must be outside of the data directory ${dataDir}.`);
  const key = readKeyFile(masterKeyFile(dataDir));
  const path = join(resolve(destination), backupName(now));
  const keyFile = resolve(options.keyFile(masterKeyId(key)));
  if (isWithin(path, keyFile)) throw new Error(`The copy of the master key must be outside of the backup ${path}.`);

  const draft = `${path}.partial`;
  await mkdir(resolve(destination), { recursive: true, mode: 0o700 });
  await mkdir(draft, { mode: 0o700 }); // fails if another backup of the same second is being written
  try {
    await writeFile(join(draft, ".gitignore"), "*\n", { mode: 0o600 });
    const blobs = { from: join(dataDir, "blobs"), to: join(draft, "blobs") };
    // Blobs are copied before and after the databases: a file that is referenced by any row exists at one of the two
    // times.
    if (!usesBucket) await copyTree(blobs.from, blobs.to);
    await withServer(dataDir, (server) =>
      takeBaseBackup({ url: server.url("postgres"), pgData, target: join(draft, "cluster") }),
    );
    if (!usesBucket) await copyTree(blobs.from, blobs.to);
    await copyFileDurably(join(dataDir, "postgres", "password"), join(draft, "password"));
    await storeKey(keyFile, key);
    const size = await sizeOfBackup(draft);
    await writeManifest(draft, {
      createdAt: now.toISOString(),
      masterKeyId: masterKeyId(key),
      blobs: usesBucket ? "bucket" : "included",
      ...size,
    });
    await rename(draft, path);
    return { path, keyFile, ...size };
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

/** Returns the size of a backup's cluster and blobs, which a restore compares with the manifest. */
export async function sizeOfBackup(directory: string): Promise<TreeSize> {
  const [cluster, blobs] = [await sizeOfTree(join(directory, "cluster")), await sizeOfTree(join(directory, "blobs"))];
  return { files: cluster.files + blobs.files, bytes: cluster.bytes + blobs.bytes };
}

/**
 * Calls `use` with the server of the running platform. If no platform runs, starts the server for the duration of the
 * call, with the data directory locked so that no platform can start.
 */
async function withServer(dataDir: string, use: (server: EmbeddedPostgres) => Promise<void>): Promise<void> {
  const unlock = lockUnlessRunning(dataDir);
  try {
    const server = await EmbeddedPostgres.start({ dataDir: join(dataDir, "postgres") });
    try {
      await use(server);
    } finally {
      if (unlock && !server.isAdopted) await server.stop();
    }
  } finally {
    unlock?.();
  }
}

function lockUnlessRunning(dataDir: string): (() => void) | undefined {
  try {
    return lockDataDirectory(dataDir);
  } catch (error) {
    if (error instanceof DataDirectoryLocked) return undefined;
    throw error;
  }
}

import { existsSync, readdirSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { copyFileDurably, EmbeddedPostgres } from "@millwright/database";
import { prepareDataDirectory } from "../data-directory.ts";
import { lockDataDirectory } from "../instance-lock.ts";
import { masterKeyFile } from "../master-key.ts";
import { copyTree } from "./copy-tree.ts";
import { sizeOfBackup } from "./create-backup.ts";
import { findKey, storeKey } from "./key-copy.ts";
import { findBackup, readManifest, type Manifest } from "./manifest.ts";

export type RestoreOptions = {
  /** Data directory to create: absent, empty, or with only a master key. */
  readonly dataDir: string;
  /** A backup, or a directory of backups, of which the newest is restored. */
  readonly source: string;
  /** Returns the files that may contain the master key, by its identifier. The data directory is searched too. */
  readonly keyFiles: (keyId: string) => readonly string[];
};

/**
 * Creates the data directory of a platform from a backup, and starts its databases once to verify that they are
 * complete.
 *
 * Errors: a plain Error with the cause; in this case all restored data is deleted from the data directory.
 */
export async function restoreBackup({
  dataDir,
  source,
  keyFiles,
}: RestoreOptions): Promise<{ path: string; manifest: Manifest }> {
  const path = await findBackup(resolve(source));
  const manifest = await readManifest(path);
  const { files, bytes } = await sizeOfBackup(path);
  if (files !== manifest.files || bytes !== manifest.bytes) {
    throw new Error(
      `${path} is incomplete: it has ${files} files with ${bytes} bytes instead of ${manifest.files} with ${manifest.bytes}.`,
    );
  }
  for (const part of ["postgres", "blobs"]) requireAbsent(dataDir, part);
  const key = findKey(manifest.masterKeyId, [...keyFiles(manifest.masterKeyId), masterKeyFile(dataDir)]);
  prepareDataDirectory(dataDir);
  const unlock = lockDataDirectory(dataDir);
  try {
    await storeKey(masterKeyFile(dataDir), key);
    await copyCluster(path, join(dataDir, "postgres"));
    await copyTree(join(path, "blobs"), join(dataDir, "blobs"));
    const server = await EmbeddedPostgres.start({ dataDir: join(dataDir, "postgres") });
    await server.stop();
    return { path, manifest };
  } catch (error) {
    for (const part of ["postgres", "blobs"]) await rm(join(dataDir, part), { recursive: true, force: true });
    throw error;
  } finally {
    unlock();
  }
}

function requireAbsent(dataDir: string, part: string): void {
  const directory = join(dataDir, part);
  if (!existsSync(directory) || readdirSync(directory).length === 0) return;
  throw new Error(
    `${dataDir} already contains a platform. Move it away, or set MILLWRIGHT_DATA_DIR to an empty directory.`,
  );
}

/**
 * Copies the cluster to a draft directory and renames it at the end, so that a concurrent start finds a complete
 * cluster or none.
 */
async function copyCluster(path: string, postgres: string): Promise<void> {
  const draft = join(postgres, "cluster.restored");
  await copyTree(join(path, "cluster"), draft);
  await copyFileDurably(join(path, "password"), join(postgres, "password"));
  await rename(draft, join(postgres, "cluster"));
}

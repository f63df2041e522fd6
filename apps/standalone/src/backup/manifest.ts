import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "manifest.json";
const FORMAT = 1;

/** Description of a backup. It is written last, so a directory without it is not a complete backup. */
export type Manifest = {
  readonly format: number;
  readonly createdAt: string;
  /** Identifier of the master key that decrypts the backup's secrets. */
  readonly masterKeyId: string;
  /** Location of the files of runs: in the backup, or in a bucket that the operator backs up. */
  readonly blobs: "included" | "bucket";
  /** Number and bytes of the copied files of cluster and blobs. A restore compares them. */
  readonly files: number;
  readonly bytes: number;
};

export const writeManifest = (directory: string, manifest: Omit<Manifest, "format">): Promise<void> =>
  writeFile(join(directory, FILE), `${JSON.stringify({ format: FORMAT, ...manifest }, null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });

/**
 * Returns the manifest of a backup. Errors: a plain Error if the directory contains no complete backup of a known
 * format.
 */
export async function readManifest(directory: string): Promise<Manifest> {
  const manifest = JSON.parse(await readFile(join(directory, FILE), "utf8")) as Manifest;
  if (manifest.format !== FORMAT)
    throw new Error(`${directory} has format ${manifest.format}; this version reads format ${FORMAT}.`);
  return manifest;
}

/** Returns the name of a backup. Names sort by time. */
export const backupName = (now: Date): string => `millwright-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;

/** Returns `path` if it is a backup, else the newest backup in it. Errors: a plain Error if there is none. */
export async function findBackup(path: string): Promise<string> {
  if (existsSync(join(path, FILE))) return path;
  const names = await readdir(path).catch((): string[] => []);
  const complete = names.filter((name) => name.startsWith("millwright-") && existsSync(join(path, name, FILE)));
  const newest = complete.toSorted((a, b) => a.localeCompare(b)).at(-1);
  if (newest === undefined) throw new Error(`${path} contains no complete backup.`);
  return join(path, newest);
}

import { chmod, mkdir, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, isAbsolute, relative } from "node:path";
import { masterKeyId, readKeyFile } from "@millwright/vault";

/** Returns whether `path` is `directory` or below it. Both must be absolute. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

/**
 * Writes a key to a file (mode 0600) unless the file exists. Errors: a plain Error if the file contains another key.
 */
export async function storeKey(path: string, key: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path))
    await writeFile(path, `${Buffer.from(key).toString("base64")}\n`, { mode: 0o600, flag: "wx", flush: true });
  await chmod(path, 0o600);
  if (masterKeyId(readKeyFile(path)) !== masterKeyId(key))
    throw new Error(`${path} contains another key. Move it away, or name another file with --key-file.`);
}

/** Returns the key with this identifier from the first file that has it. Errors: a plain Error that lists the files. */
export function findKey(id: string, files: readonly string[]): Uint8Array {
  const found = files
    .filter((file) => existsSync(file))
    .map(readKeyFile)
    .find((key) => masterKeyId(key) === id);
  if (found) return found;
  throw new Error(
    `The secrets of this backup are sealed with the master key ${id}, which is not in ${files.join(" or ")}. ` +
      "Name the file of that key with --key-file.",
  );
}

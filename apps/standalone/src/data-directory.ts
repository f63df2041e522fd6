import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

const OWNER_ONLY = 0o700;
/** Other users can enter the directory but cannot list its content. */
const TRAVERSABLE = 0o711;

/**
 * Creates the data directory and its parts, or corrects their modes. Only the user of the platform can enter the parts
 * with secrets and customer data. A platform that runs as root can start workers under another user: only in this case,
 * the data directory and `workers/` are traversable, so that a worker can reach its own directory and nothing else.
 *
 * Errors: those of the file system, such as EPERM if the directory belongs to another user.
 */
export function prepareDataDirectory(dataDir: string, isRoot = process.getuid?.() === 0): void {
  ensureDirectory(dataDir, isRoot ? TRAVERSABLE : OWNER_ONLY);
  for (const name of ["blobs", "logs", "postgres"]) ensureDirectory(join(dataDir, name), OWNER_ONLY);
  ensureDirectory(join(dataDir, "workers"), isRoot ? TRAVERSABLE : OWNER_ONLY);
}

function ensureDirectory(path: string, mode: number): void {
  mkdirSync(path, { recursive: true, mode });
  if ((statSync(path).mode & 0o777) !== mode) chmodSync(path, mode);
}

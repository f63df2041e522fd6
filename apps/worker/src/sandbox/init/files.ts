import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, realpath, type FileHandle } from "node:fs/promises";
import { dirname, join, matchesGlob, relative, resolve, sep } from "node:path";
import {
  CHUNK_BYTES_MAX,
  Fault,
  LIST_BYTES_MAX,
  LIST_ENTRIES_MAX,
  type FileType,
  type ListEntry,
  type ListRequest,
  type ListValue,
  type ReadRequest,
  type ReadValue,
  type StatRequest,
  type StatValue,
  type WriteRequest,
  type WriteValue,
} from "./protocol.ts";

/** Directories that are not searched: they are large and rarely relevant. */
const SKIPPED_DIRECTORIES = new Set([".git", "node_modules"]);

/** Reads one chunk of a regular file. */
export async function readChunk(request: ReadRequest): Promise<ReadValue> {
  const path = await resolveInside(request.root, request.path);
  return withRegularFile(path, constants.O_RDONLY, async (file, sizeBytes) => {
    const buffer = Buffer.alloc(Math.min(request.length, CHUNK_BYTES_MAX));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, request.offset);
    return { data: buffer.subarray(0, bytesRead).toString("base64"), sizeBytes };
  });
}

/** Writes or appends to a regular file and creates missing directories. An existing file retains its mode. */
export async function writeChunk(request: WriteRequest): Promise<WriteValue> {
  const path = await resolveInside(request.root, request.path);
  const created = (await lstat(path).catch(() => undefined)) === undefined;
  await mkdir(dirname(path), { recursive: true });
  const flags = constants.O_WRONLY | constants.O_CREAT | (request.append ? constants.O_APPEND : constants.O_TRUNC);
  return withRegularFile(path, flags, async (file) => {
    await file.writeFile(Buffer.from(request.data, "base64"));
    return { created };
  });
}

/** Returns the type and size of a path. The last symbolic link is not followed out of the root. */
export async function statPath(request: StatRequest): Promise<StatValue> {
  const path = await resolveInside(request.root, request.path);
  const found = await lstat(path).catch(() => undefined);
  return found ? { type: typeOf(found), sizeBytes: found.size } : { type: "absent", sizeBytes: 0 };
}

/**
 * Returns files and directories below a directory, sorted, with relative paths. An empty pattern matches everything.
 */
export async function listDirectory(request: ListRequest): Promise<ListValue> {
  const top = await resolveInside(request.root, request.path);
  if (!(await lstat(top).catch(() => undefined))?.isDirectory())
    throw new Fault("not_a_directory", `There is no directory ${request.path}.`);
  const entries: ListEntry[] = [];
  let bytes = 0; // size of the paths in the response: long names may exceed the line limit before the entry limit
  const walk = async (directory: string, depth: number): Promise<void> => {
    const children = (await readdir(directory, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const child of children) {
      if (entries.length > LIST_ENTRIES_MAX || bytes > LIST_BYTES_MAX) return;
      const path = join(directory, child.name);
      const shown = relative(top, path);
      if (request.pattern === "" || matchesGlob(shown, request.pattern) || matchesGlob(child.name, request.pattern)) {
        bytes += Buffer.byteLength(JSON.stringify(shown));
        entries.push({
          path: shown,
          type: typeOf(child),
          sizeBytes: child.isFile() ? ((await lstat(path).catch(() => undefined))?.size ?? 0) : 0,
        });
      }
      if (child.isDirectory() && depth > 1 && !SKIPPED_DIRECTORIES.has(child.name)) await walk(path, depth - 1);
    }
  };
  await walk(top, request.depth);
  return {
    entries: entries.slice(0, LIST_ENTRIES_MAX),
    truncated: entries.length > LIST_ENTRIES_MAX || bytes > LIST_BYTES_MAX,
  };
}

/** Returns the real path. Throws `outside_workspace` if any symbolic link in the path leads outside the root. */
export async function resolveInside(root: string, path: string): Promise<string> {
  if (path.includes("\0")) throw new Fault("invalid_request", "A path contains a NUL byte.");
  const realRoot = await realpath(root);
  const wanted = resolve(realRoot, path);
  const lexical = isInside(realRoot, wanted)
    ? wanted
    : isInside(root, wanted)
      ? resolve(realRoot, relative(root, wanted))
      : undefined;
  if (lexical === undefined) throw outside(path);
  let existing = lexical;
  while (!(await lstat(existing).catch(() => undefined))) existing = dirname(existing);
  const real = await realpath(existing).catch(() => undefined); // a dangling link has no real path
  if (real === undefined || !isInside(realRoot, real)) throw outside(path);
  return resolve(real, relative(existing, lexical));
}

const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
const outside = (path: string): Fault => new Fault("outside_workspace", `${path} is outside the workspace.`);

async function withRegularFile<T>(
  path: string,
  flags: number,
  use: (file: FileHandle, sizeBytes: number) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR")
        throw new Fault("not_found", `There is no file ${path}.`);
      if (error.code === "EISDIR" || error.code === "ENXIO" || error.code === "ELOOP")
        throw new Fault("not_a_file", `${path} is not a regular file.`);
      throw new Fault("io_error", `${path}: ${error.code ?? "unknown error"}`);
    },
  );
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Fault("not_a_file", `${path} is not a regular file.`);
    return await use(file, found.size);
  } finally {
    await file.close();
  }
}

function typeOf(entry: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): FileType {
  return entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other";
}

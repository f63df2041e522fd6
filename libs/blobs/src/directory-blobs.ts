import { randomUUID } from "node:crypto";
import { mkdir, open, opendir, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { Readable } from "node:stream";
import type { Clock } from "@millwright/clock";
import { headerType } from "./blob-headers.ts";
import { blobKeySegments } from "./blob-key.ts";
import type { Blob, BlobContent, BlobStore, ListedBlob, PutOptions } from "./blob-store.ts";
import { ContentCheck } from "./content-check.ts";
import { signDownload, signOpenUpload, signUpload } from "./signed-url.ts";

export type DirectoryBlobsOptions = {
  readonly dir: string;
  /** Origin of the server that serves `/blobs/…` with `handleSignedRequest`. */
  readonly publicUrl: string;
  /** At least 32 bytes; the same as that server's. */
  readonly signingKey: Uint8Array;
  readonly clock: Clock;
};

/**
 * Stores blobs in a directory of one host. A file's first line is its content type, so that type and bytes appear
 * together, by one rename.
 */
export function directoryBlobs(options: DirectoryBlobsOptions): BlobStore {
  const pathOf = (key: string) => join(options.dir, ...blobKeySegments(key)) + SUFFIX;
  return {
    put: async (key, body, put) => write(options.dir, pathOf(key), body, put),
    get: async (key) => read(pathOf(key)),
    delete: async (key) => rm(pathOf(key), { force: true }),
    list: (folder) => list(options.dir, join(...blobKeySegments(folder))),
    deleteDrafts: async (before) => deleteDrafts(join(options.dir, DRAFTS), before),
    signDownload: async (key, download) => signDownload(options, key, download),
    signUpload: async (key, upload) => ({
      url: signUpload(options, key, upload),
      headers: { "content-type": headerType(upload.contentType) },
    }),
    signOpenUpload: async (key, upload) => ({
      url: signOpenUpload(options, key, upload),
      headers: { "content-type": headerType(upload.contentType) },
    }),
  };
}

const SUFFIX = ".blob";
const DRAFTS = ".drafts";

async function write(
  dir: string,
  path: string,
  body: Uint8Array | Readable,
  options: PutOptions,
): Promise<BlobContent> {
  const draft = join(dir, DRAFTS, randomUUID());
  await mkdir(dirname(draft), { recursive: true });
  try {
    const stored = await writeDraft(draft, body, options);
    await mkdir(dirname(path), { recursive: true });
    await rename(draft, path);
    await syncDirectory(dirname(path));
    return stored;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function writeDraft(
  path: string,
  body: Uint8Array | Readable,
  { contentType, ...bounds }: PutOptions,
): Promise<BlobContent> {
  const check = new ContentCheck(bounds);
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(`${headerType(contentType)}\n`);
    const chunks: AsyncIterable<Uint8Array> | Uint8Array[] = body instanceof Readable ? body : [body];
    for await (const chunk of chunks) {
      check.add(chunk);
      await file.writeFile(chunk);
    }
    const content = check.end();
    await file.sync();
    return content;
  } finally {
    await file.close();
  }
}

const HEADER_BYTES_MAX = 256;

async function read(path: string): Promise<Blob | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES_MAX), 0, HEADER_BYTES_MAX, 0);
  const end = buffer.subarray(0, bytesRead).indexOf("\n");
  const { size } = await file.stat();
  const contentType = buffer.subarray(0, end).toString("latin1");
  return { body: file.createReadStream({ start: end + 1 }), size: size - end - 1, contentType };
}

async function* list(dir: string, folder: string): AsyncGenerator<ListedBlob> {
  const entries = await opendir(join(dir, folder), { recursive: true }).catch(whenAbsent);
  for await (const entry of entries ?? []) {
    if (!entry.name.endsWith(SUFFIX)) continue;
    const path = join(entry.parentPath, entry.name);
    const found = await stat(path).catch(whenAbsent);
    if (found) yield { key: relative(dir, path).slice(0, -SUFFIX.length).replaceAll(sep, "/"), storedAt: found.mtime };
  }
}

async function deleteDrafts(dir: string, before: Date): Promise<void> {
  for (const name of (await readdir(dir).catch(whenAbsent)) ?? []) {
    const found = await stat(join(dir, name)).catch(whenAbsent);
    if (found && found.mtime < before) await rm(join(dir, name), { force: true });
  }
}

/** Whether the file is absent, or another process was faster. */
function whenAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** Makes the rename durable: without it a power failure may undo it. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

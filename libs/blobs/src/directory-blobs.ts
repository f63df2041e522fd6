import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { blobKeySegments } from "./blob-key.ts";
import type { Blob, BlobStore, PutOptions, StoredBlob } from "./blob-store.ts";
import { signUrl } from "./signed-url.ts";

export type DirectoryBlobsOptions = {
  readonly dir: string;
  /** Origin of the server that answers `/blobs/…` with `verifySignedRequest`. */
  readonly publicUrl: string;
  /** At least 32 bytes, known to that server too. */
  readonly signingKey: Uint8Array;
  readonly clock: Clock;
};

/**
 * Blobs in a directory of one host. A file starts with one line that holds its content type, so that type and bytes appear
 * together, by one rename.
 */
export function directoryBlobs(options: DirectoryBlobsOptions): BlobStore {
  const pathOf = (key: string) => `${join(options.dir, ...blobKeySegments(key))}.blob`;
  return {
    put: async (key, body, put) => write(options.dir, pathOf(key), body, put),
    get: async (key) => read(pathOf(key)),
    delete: async (key) => rm(pathOf(key), { force: true }),
    signedUrl: (key, sign) => signUrl(options, blobKeySegments(key).join("/"), sign),
  };
}

async function write(dir: string, path: string, body: Uint8Array | Readable, options: PutOptions): Promise<StoredBlob> {
  const draft = join(dir, ".drafts", randomUUID());
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

async function writeDraft(path: string, body: Uint8Array | Readable, options: PutOptions): Promise<StoredBlob> {
  const hash = createHash("sha256");
  const sizeMax = options.sizeBytesMax ?? Number.POSITIVE_INFINITY;
  let size = 0;
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(`${headerLine(options.contentType)}\n`);
    const chunks: AsyncIterable<Uint8Array> | Uint8Array[] = body instanceof Readable ? body : [body];
    for await (const chunk of chunks) {
      size += chunk.byteLength;
      if (size > sizeMax) throw tooLarge(sizeMax);
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { size, sha256: hash.digest("hex") };
}

const tooLarge = (sizeMax: number): DomainError =>
  new DomainError({ kind: "too_large", reason: "blob_too_large", message: `The file is larger than ${sizeMax} bytes.` });

/** Content types never contain line breaks; a hostile one must not become part of the body. */
const headerLine = (contentType: string): string => contentType.replaceAll(/[^\x20-\x7e]/g, "").slice(0, 255);

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

/** Without it a power cut may forget the rename. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

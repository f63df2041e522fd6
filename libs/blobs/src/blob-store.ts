import type { Readable } from "node:stream";

/** What is stored, as told by `put`. `sha256` in lower-case hex. */
export type StoredBlob = { readonly size: number; readonly sha256: string };

export type Blob = { readonly body: Readable; readonly size: number; readonly contentType: string };

export type PutOptions = {
  readonly contentType: string;
  /** Refuses longer bodies with `blob_too_large`; nothing is stored then. */
  readonly sizeBytesMax?: number;
};

export type SignOptions = {
  readonly method: "GET" | "PUT";
  readonly expiresInSeconds: number;
  /** The name a browser saves a download under. */
  readonly filename?: string;
  /** The type an upload is stored with. */
  readonly contentType?: string;
  /** Uploads longer than this are refused. */
  readonly sizeBytesMax?: number;
};

/**
 * Files by key. Keys are paths of 1 to 16 segments of [A-Za-z0-9._-]; a segment neither starts with a dot nor ends in ".blob".
 * Errors everywhere: blob_key_invalid (invalid_argument).
 */
export interface BlobStore {
  /** Stores a body whole or not at all, replacing what was there. It is on disk when this returns. Errors: blob_too_large. */
  put(key: string, body: Uint8Array | Readable, options: PutOptions): Promise<StoredBlob>;
  /** The caller must consume or destroy `body`. */
  get(key: string): Promise<Blob | undefined>;
  /** Deleting what is absent is fine. */
  delete(key: string): Promise<void>;
  /** A URL that works without authorization until it expires. */
  signedUrl(key: string, options: SignOptions): string;
}

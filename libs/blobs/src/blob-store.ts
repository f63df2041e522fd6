import type { Readable } from "node:stream";

/** The stored or expected content. `sha256` in lower-case hex. */
export type BlobContent = { readonly size: number; readonly sha256: string };

export type Blob = { readonly body: Readable; readonly size: number; readonly contentType: string };

export type ListedBlob = {
  readonly key: string;
  /** When it was stored, by the store's clock. */
  readonly storedAt: Date;
};

export type PutOptions = {
  readonly contentType: string;
  /** Rejects different content with `blob_content_mismatch` and stores nothing. */
  readonly expected?: BlobContent;
  /** Rejects larger content with `blob_too_large` and stores nothing. */
  readonly sizeMax?: number;
};

export type DownloadOptions = {
  readonly expiresInSeconds: number;
  /** The content type under which it is served. Only harmless types are displayed inline; others are downloaded. */
  readonly contentType: string;
  /** The file name for a download. */
  readonly filename?: string;
};

export type UploadOptions = BlobContent & { readonly expiresInSeconds: number; readonly contentType: string };

export type OpenUploadOptions = {
  readonly expiresInSeconds: number;
  readonly contentType: string;
  readonly sizeMax: number;
};

/** A PUT that needs no authorization. The headers must be sent unchanged, with the `content-length` of the content. */
export type SignedUpload = { readonly url: string; readonly headers: Readonly<Record<string, string>> };

/**
 * Files by key. Keys are paths of 1 to 16 segments of [A-Za-z0-9._-]; a segment neither starts with a dot nor ends in
 * ".blob". Every method can throw blob_key_invalid (invalid_argument) and blob_store_unavailable (unavailable).
 */
export interface BlobStore {
  /**
   * Stores a body atomically, replacing the previous one; it is durable when this returns. Errors:
   * blob_content_mismatch, blob_too_large.
   */
  put(key: string, body: Uint8Array | Readable, options: PutOptions): Promise<BlobContent>;
  /** The caller must consume or destroy `body`. */
  get(key: string): Promise<Blob | undefined>;
  /** Deletes a blob; succeeds if it is absent. */
  delete(key: string): Promise<void>;
  /** Yields every blob below a folder, such as "artifacts", in no particular order; skips files of other origins. */
  list(folder: string): AsyncIterable<ListedBlob>;
  /** Removes the temporary files of writes that were interrupted before that time. */
  deleteDrafts(before: Date): Promise<void>;
  /** Returns a GET URL that needs no authorization until it expires. */
  signDownload(key: string, options: DownloadOptions): Promise<string>;
  /**
   * Returns a PUT URL for exactly this content. Using it again, later or with other bytes, changes nothing, so a key
   * that contains the hash of its content never has other content.
   */
  signUpload(key: string, options: UploadOptions): Promise<SignedUpload>;
  /**
   * Returns a PUT URL for any content, reusable until it expires: for keys that are read once and then deleted. A
   * bucket does not enforce `sizeMax`; the reader of the key must check the size.
   */
  signOpenUpload(key: string, options: OpenUploadOptions): Promise<SignedUpload>;
}

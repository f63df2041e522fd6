import type { Readable } from "node:stream";

/** What is stored, or has to be. `sha256` in lower-case hex. */
export type BlobContent = { readonly size: number; readonly sha256: string };

export type Blob = { readonly body: Readable; readonly size: number; readonly contentType: string };

export type ListedBlob = {
  readonly key: string;
  /** When it was stored, by the store's clock. */
  readonly storedAt: Date;
};

export type PutOptions = {
  readonly contentType: string;
  /** Refuses every other content with `blob_content_mismatch`; nothing is stored then. */
  readonly expected?: BlobContent;
  /** Refuses more bytes with `blob_too_large`; nothing is stored then. */
  readonly sizeMax?: number;
};

export type DownloadOptions = {
  readonly expiresInSeconds: number;
  /** The type it is served as. Only harmless types are shown in place, the others are saved. */
  readonly contentType: string;
  /** The name a browser saves it under. */
  readonly filename?: string;
};

export type UploadOptions = BlobContent & { readonly expiresInSeconds: number; readonly contentType: string };

export type OpenUploadOptions = {
  readonly expiresInSeconds: number;
  readonly contentType: string;
  readonly sizeMax: number;
};

/** A PUT that works without authorization: the headers have to be sent as they stand, `content-length` as the content has it. */
export type SignedUpload = { readonly url: string; readonly headers: Readonly<Record<string, string>> };

/**
 * Files by key. Keys are paths of 1 to 16 segments of [A-Za-z0-9._-]; a segment neither starts with a dot nor ends in ".blob".
 * Errors everywhere: blob_key_invalid (invalid_argument), blob_store_unavailable (unavailable).
 */
export interface BlobStore {
  /** Stores a body whole or not at all, replacing what was there; it is durable when this returns. Errors: blob_content_mismatch, blob_too_large. */
  put(key: string, body: Uint8Array | Readable, options: PutOptions): Promise<BlobContent>;
  /** The caller must consume or destroy `body`. */
  get(key: string): Promise<Blob | undefined>;
  /** Deleting what is absent is fine. */
  delete(key: string): Promise<void>;
  /** Everything below a folder, such as "artifacts", in no certain order; what is not this store's is left out. */
  list(folder: string): AsyncIterable<ListedBlob>;
  /** Throws away what broken-off writes before that time left behind. */
  deleteDrafts(before: Date): Promise<void>;
  /** A GET that works without authorization until it expires. */
  signDownload(key: string, options: DownloadOptions): Promise<string>;
  /**
   * A PUT of exactly this content: whoever uses it again, later or with other bytes, changes nothing. So a key that holds the hash
   * of its content never has any other.
   */
  signUpload(key: string, options: UploadOptions): Promise<SignedUpload>;
  /**
   * A PUT of whatever comes, again and again until it expires: for keys that are read once and then given up. A bucket does not know `sizeMax`;
   * whoever reads the key must measure.
   */
  signOpenUpload(key: string, options: OpenUploadOptions): Promise<SignedUpload>;
}

export type { Blob, BlobStore, PutOptions, SignOptions, StoredBlob } from "./blob-store.ts";
export { directoryBlobs, type DirectoryBlobsOptions } from "./directory-blobs.ts";
export { blobHeaders } from "./blob-headers.ts";
export { verifySignedRequest, type SignedRequest } from "./signed-url.ts";

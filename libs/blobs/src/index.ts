export { handleSignedRequest } from "./handle-signed-request.ts";
export type {
  Blob,
  BlobContent,
  BlobStore,
  DownloadOptions,
  ListedBlob,
  OpenUploadOptions,
  PutOptions,
  SignedUpload,
  UploadOptions,
} from "./blob-store.ts";
export { directoryBlobs, type DirectoryBlobsOptions } from "./directory-blobs.ts";
export { blobHeaders } from "./blob-headers.ts";
export { blobDirectory, blobRule, blobSettings, bucketRule, bucketSettings, openBucket } from "./open-blobs.ts";
export { verifySignedRequest, type SignedRequest, type UrlSigning } from "./signed-url.ts";

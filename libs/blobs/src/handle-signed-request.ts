import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { blobHeaders } from "./blob-headers.ts";
import type { BlobStore } from "./blob-store.ts";
import { verifySignedRequest, type UrlSigning } from "./signed-url.ts";

/**
 * Serves a signed URL of the directory store, a download or an upload, without further authorization.
 * Errors: signed_url_invalid · blob_content_mismatch · blob_too_large · those of the store, of the request and of the
 * response.
 */
export async function handleSignedRequest(
  store: Pick<BlobStore, "put" | "get">,
  signing: UrlSigning,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const permitted = verifySignedRequest(signing, request.method ?? "", request.url ?? "");
  if (permitted.method === "PUT") {
    await store.put(permitted.key, request, permitted);
    return void response.writeHead(200, { "content-length": "0" }).end();
  }
  const blob = await store.get(permitted.key);
  if (!blob) return void response.writeHead(404, { "content-length": "0" }).end();
  response.writeHead(200, blobHeaders({ contentType: permitted.contentType, size: blob.size }, permitted.filename));
  if (request.method === "HEAD") {
    blob.body.destroy();
    return void response.end();
  }
  await pipeline(blob.body, response);
}

import { pipeline } from "node:stream/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { blobHeaders, verifySignedRequest, type BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import { currentScope, newTraceContext, type Logger } from "@millwright/telemetry";
import type { Mount } from "../rest/index.ts";
import { asDomainError, problemOf } from "../rest/problem.ts";

export type BlobMountDeps = { store: BlobStore; signingKey: Uint8Array; publicUrl: string; clock: Clock; log: Pick<Logger, "error"> };

/** Signed URLs of the directory blob store: GET and PUT under `/blobs/…`, no Authorization needed (spec §4, artifacts). */
export const blobMount = (deps: BlobMountDeps): Mount => ({
  prefix: "/blobs/",
  listener: (request, response) => void serve(deps, request, response).catch((error: unknown) => refuse(deps, error, request, response)),
});

async function serve({ store, signingKey, clock }: BlobMountDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const permitted = verifySignedRequest({ signingKey, clock }, request.method ?? "", request.url ?? "");
  if (permitted.method === "PUT") {
    await store.put(permitted.key, request, { contentType: permitted.contentType ?? "application/octet-stream", ...(permitted.sizeBytesMax === undefined ? {} : { sizeBytesMax: permitted.sizeBytesMax }) });
    response.writeHead(200, { "content-length": "0" }).end();
    return;
  }
  const blob = await store.get(permitted.key);
  if (!blob) return void response.writeHead(404, { "content-length": "0" }).end();
  response.writeHead(200, blobHeaders(blob, permitted.filename));
  if (request.method === "HEAD") {
    blob.body.destroy();
    return void response.end();
  }
  await pipeline(blob.body, response);
}

function refuse({ publicUrl, log }: BlobMountDeps, thrown: unknown, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const error = asDomainError(thrown);
  const path = (request.url ?? "").split("?")[0]!;
  const { traceId } = currentScope()?.trace ?? newTraceContext();
  const { status, body, headers } = problemOf(error, { publicUrl, path, traceId, isUnrepeatable: false });
  // Without the path, which is half of a credential.
  if (status >= 500) log.error({ traceId, operation: `${request.method} /blobs/`, reason: error.reason, error }, "request failed");
  if (!request.complete) response.setHeader("connection", "close");
  response.writeHead(status, headers).end(JSON.stringify(body));
}

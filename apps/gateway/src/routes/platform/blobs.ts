import type { IncomingMessage, ServerResponse } from "node:http";
import { handleSignedRequest, type BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import { currentScope, newTraceContext, type Logger } from "@millwright/telemetry";
import type { Mount } from "../../rest/index.ts";
import { asDomainError, problemOf } from "@millwright/errors";

export type BlobMountDeps = {
  store: BlobStore;
  signingKey: Uint8Array;
  acceptedKeys?: readonly Uint8Array[];
  publicUrl: string;
  clock: Clock;
  log: Pick<Logger, "error">;
};

/** Serves signed URLs of the directory blob store: GET and PUT below `/blobs/`, without an Authorization header. */
export const blobMount = (deps: BlobMountDeps): Mount => ({
  prefix: "/blobs/",
  listener: (request, response) =>
    void handleSignedRequest(deps.store, deps, request, response).catch((error: unknown) =>
      refuse(deps, error, request, response),
    ),
});

function refuse(
  { publicUrl, log }: BlobMountDeps,
  thrown: unknown,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const error = asDomainError(thrown);
  const path = (request.url ?? "").split("?")[0]!;
  const { traceId } = currentScope()?.trace ?? newTraceContext();
  const { status, body, headers } = problemOf(error, { publicUrl, path, traceId, isUnrepeatable: false });
  // The path is not logged, because it is part of a signed URL, which is a credential.
  if (status >= 500)
    log.error({ traceId, operation: `${request.method} /blobs/`, reason: error.reason, error }, "request failed");
  if (!request.complete) response.setHeader("connection", "close");
  response.writeHead(status, headers).end(JSON.stringify(body));
}

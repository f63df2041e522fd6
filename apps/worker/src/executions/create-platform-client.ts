import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import type { JsonObject } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import type { worker } from "@millwright/contracts";
import { currentScope, formatTraceparent, inSpan, TRACEPARENT } from "@millwright/telemetry";
import type { WorkerClient } from "../protocol/client.ts";
import { retrying, type RetryDeps } from "../protocol/retrying.ts";
import type { OutboundGate } from "../egress/outbound-gate.ts";
import type { HistoryEvent, NewArtifact, PlatformClient, TokenCounts } from "../context/platform-client.ts";
import { download, exchange, isTransient, unavailable, upload } from "./http-transfer.ts";

/** Larger content is uploaded to a signed URL. */
const INLINE_BYTES_MAX = 256 * 1024;
/**
 * The maximum number of retries after transient responses. They take longer than the gate stays open in an outage, so
 * that an outage never ends a call. An unreachable platform is retried while the lease may be valid.
 */
const TRANSIENT_RESPONSES_MAX = 10;
/** The request had no effect. The next heartbeat returns a new token or reports that the lease is lost. */
const TOKEN_REFUSED = 401;
const REPEATABLE_METHODS = new Set(["GET", "HEAD", "PUT", "PATCH", "DELETE"]);

export type PlatformClientDeps = RetryDeps & {
  readonly client: WorkerClient;
  readonly lease: { readonly executionId: bigint; readonly attempt: number };
  readonly gate: OutboundGate;
  readonly signal: AbortSignal;
  /** The origin at which the worker connects to the platform. */
  readonly url: string;
  /** The provider credential of the run, in the form of `ReportUsage`. */
  readonly modelAccess: string;
  /** The value in the assignment. */
  readonly costLimited: boolean;
  /** Returns the current run token. */
  readonly runToken: () => string;
};

/** Returns the platform client of one attempt. Every call waits for the outbound gate, including each retry. */
export function createPlatformClient(deps: PlatformClientDeps): PlatformClient {
  const { client, lease, gate, signal } = deps;
  let isCostLimited = deps.costLimited;
  const options = (): CallOptions => ({ signal, timeoutMs: deps.timings().callTimeoutMs * 2 });
  const outside = <T>(act: () => Promise<T>): Promise<T> =>
    retrying(deps, signal, async () => {
      await gate.whenOpen();
      return act();
    });

  return {
    async createArtifact(artifact) {
      const created = await outside(() => client.createArtifact({ ...lease, ...artifactFields(artifact) }, options()));
      const { artifactUid } = created;
      if (created.uploadUrl !== "" && artifact.content) {
        const content = new Blob([new Uint8Array(artifact.content)]);
        await outside(() => upload(created, content, signal, deps.timings().callTimeoutMs));
        await outside(() => client.commitArtifact({ ...lease, artifactUid }, options()));
      }
      return { artifactUid };
    },

    openPullRequest: (pullRequest) => outside(() => client.openPullRequest({ ...lease, ...pullRequest }, options())),

    async reportUsage({ callId, modelId, usage, isEstimated: estimated = false }) {
      const { costLimited } = await outside(() =>
        client.reportUsage(
          { ...lease, callId, modelId, usage: tokenFields(usage), estimated, access: deps.modelAccess },
          options(),
        ),
      );
      isCostLimited ||= costLimited;
    },

    isCostLimited: () => isCostLimited,

    async reserveCost({ modelId, inputTokens, outputTokens }) {
      const { outcome, message } = await outside(() =>
        client.reserveCost(
          { ...lease, modelId, inputTokens: BigInt(inputTokens), outputTokens: BigInt(outputTokens) },
          options(),
        ),
      );
      return { outcome, message };
    },

    async readHistory() {
      const events: HistoryEvent[] = [];
      for (let pageToken = "", hasMore = true; hasMore; hasMore = pageToken !== "") {
        const page = await retrying(deps, signal, () =>
          client.readHistory({ ...lease, wholeConversation: true, pageToken }, options()),
        );
        events.push(
          ...page.events.map(({ seq, kind, payload, runUid, executionId }) => ({
            seq,
            kind,
            payload: payload ?? {},
            runUid,
            executionId,
          })),
        );
        pageToken = page.nextPageToken;
      }
      return events;
    },

    async putSnapshot(file) {
      const content = await openAsBlob(file);
      const hash = createHash("sha256");
      for await (const chunk of content.stream()) hash.update(chunk);
      const announced = { sizeBytes: BigInt(content.size), sha256: hash.digest("hex") };
      const place = await outside(() => client.putSnapshot({ ...lease, ...announced }, options()));
      await outside(() => upload(place, content, signal, deps.timings().callTimeoutMs));
      return { snapshotKey: place.snapshotKey };
    },

    async putTranscript(content) {
      const announced = {
        sizeBytes: BigInt(content.byteLength),
        sha256: createHash("sha256").update(content).digest("hex"),
      };
      const place = await outside(() => client.putTranscript({ ...lease, ...announced }, options()));
      await outside(() => upload(place, new Blob([Buffer.from(content)]), signal, deps.timings().callTimeoutMs));
    },

    download: (url, file) => outside(() => download(url, file, signal)),

    rest: (method, path, body, headers = {}) => callRest(deps, outside, method.toUpperCase(), path, body, headers),
  };
}

async function callRest(
  deps: PlatformClientDeps,
  outside: <T>(act: () => Promise<T>) => Promise<T>,
  method: string,
  path: string,
  body: JsonObject | undefined,
  headers: Readonly<Record<string, string>>,
): ReturnType<PlatformClient["rest"]> {
  const isRepeatable =
    REPEATABLE_METHODS.has(method) || Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
  let transientResponses = 0;
  return outside(async () => {
    const { response, text } = await inSpan(
      method,
      { kind: "client", attributes: { "http.request.method": method } },
      async (span) => {
        const scope = currentScope();
        const traced = scope ? { [TRACEPARENT]: formatTraceparent(scope.trace) } : {};
        const request: RequestInit = {
          method,
          headers: {
            accept: "application/json",
            ...(body ? { "content-type": "application/json" } : {}),
            ...traced,
            ...headers,
            authorization: `Bearer ${deps.runToken()}`,
          },
          body: body && JSON.stringify(body),
          redirect: "error", // the token must be sent only to the platform
        };
        const result = await exchange(`${deps.url}${path}`, request, deps.signal, deps.timings().callTimeoutMs * 2);
        span.set({ "http.response.status_code": result.response.status });
        return result;
      },
    );
    const restResponse = { status: response.status, headers: response.headers, body: parseJson(text) };
    const mayRepeat =
      restResponse.status === TOKEN_REFUSED || (isRepeatable && isTransient(restResponse.status, restResponse.body));
    if (mayRepeat && ++transientResponses < TRANSIENT_RESPONSES_MAX) throw unavailable(undefined);
    return restResponse;
  });
}

/** Parses JSON; returns the text if it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function artifactFields({ clientArtifactId, artifactType, data, content, ...rest }: NewArtifact) {
  const base = { clientArtifactId, artifactType, data, public: rest.public ?? false };
  if (!content) return base;
  const measured = {
    ...base,
    sizeBytes: BigInt(content.byteLength),
    sha256: createHash("sha256").update(content).digest("hex"),
  };
  return content.byteLength <= INLINE_BYTES_MAX ? { ...measured, content: new Uint8Array(content) } : measured;
}

/** Returns only numbers that were measured. */
function tokenFields(usage: TokenCounts): { [K in keyof TokenCounts]: bigint } & Partial<worker.TokenUsage> {
  const counts = Object.entries(usage).filter((entry): entry is [keyof TokenCounts, number] => entry[1] !== undefined);
  return Object.fromEntries(counts.map(([name, count]) => [name, BigInt(count)]));
}

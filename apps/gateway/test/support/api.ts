import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { responseValidator, type ApiResponse } from "@millwright/testing";
import type { OpenApiDocument } from "../../src/rest/openapi.ts";
import type { RequestListener } from "../../src/rest/index.ts";

export type ApiAnswer = ApiResponse;

export type ApiRequest = {
  /** Bearer credential. If absent, the default key of `api` is used; null sends none. */
  key?: string | null;
  body?: unknown;
  /** Sent unchanged instead of `body`. */
  rawBody?: string | Uint8Array;
  headers?: Record<string, string>;
  /** For paths that are deliberately undocumented. */
  skipValidation?: boolean;
};

export type Api = {
  url: string;
  call(method: string, path: string, request?: ApiRequest): Promise<ApiAnswer>;
  close(): Promise<void>;
};

/**
 * Starts a real HTTP server around a listener. Validates every response below `/api/v1` against the OpenAPI document.
 */
export async function serveApi(
  app: { listener: RequestListener; document: OpenApiDocument },
  defaultKey?: string,
): Promise<Api> {
  const server: Server = createServer(app.listener);
  server.keepAliveTimeout = 0; // otherwise a reused connection can be closed while a slow test sends on it
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const validate = responseValidator(app.document);
  return {
    url,
    async call(method, path, request = {}) {
      const key = request.key === undefined ? defaultKey : request.key;
      const answer = await send(`${url}${path}`, method, { ...request, ...(key == null ? {} : { key }) });
      if (!request.skipValidation && path.startsWith("/api/v1")) validate(method, path.split("?")[0] as string, answer);
      return answer;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function send(url: string, method: string, request: ApiRequest & { key?: string | null }): Promise<ApiAnswer> {
  const body = request.rawBody ?? (request.body === undefined ? undefined : JSON.stringify(request.body));
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(request.key ? { authorization: `Bearer ${request.key}` } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...request.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson = /\bjson\b/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, body: isJson && text !== "" ? JSON.parse(text) : text };
}

import { randomUUID } from "node:crypto";
import { responseValidator, type ApiResponse, type OpenApiDocument } from "@millwright/testing";
import { type Deployment, OWNER_KEY } from "@millwright/test-platform";
import { isUnavailable, sendRequest, sendWithRetries, type RawResponse } from "./requests.ts";
import { readStream } from "./stream.ts";

export type RequestOptions = {
  /** API key; null: anonymous. Default: the client's key. */
  key?: string | null;
  body?: unknown;
  /** Body sent unchanged, instead of `body`. */
  rawBody?: string;
  headers?: Readonly<Record<string, string>>;
  /** Disables retries, also if processes of the platform are killed. */
  isOnce?: boolean;
  /** The request may be repeated, whatever its method. */
  isRepeatable?: boolean;
  /**
   * The resource does not exist for the client: the request changes nothing and may be repeated, and a 404 response to a
   * repeated DELETE is not replaced by 204.
   */
  isAbsent?: boolean;
};

/** The OpenAPI document served by the platform. */
export type ApiDocument = OpenApiDocument & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, any>>>>;
  readonly components?: any;
};

/**
 * A client of a platform's public API. It validates every response against the API document. Paths are below `/api/v1`.
 * If processes of the platform are killed, it retries unanswered requests with the same Idempotency-Key.
 */
export type Client = {
  readonly url: string;
  readonly key: string;
  readonly hasChaos: boolean;
  readonly document: ApiDocument;
  call(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>;
  /** Returns the body of a successful response. Throws the problem otherwise. */
  get(path: string, options?: RequestOptions): Promise<any>;
  post(path: string, body?: unknown, options?: RequestOptions): Promise<any>;
  put(path: string, body: unknown, options?: RequestOptions): Promise<any>;
  patch(path: string, body: unknown, options?: RequestOptions): Promise<any>;
  delete(path: string): Promise<void>;
  /** Requests any URL of the platform, such as a page or a file. The request may be repeated. */
  fetch(url: string, init?: RequestInit): Promise<RawResponse>;
  /** Like `fetch`, but sends an Idempotency-Key if the operation accepts one. */
  send(url: string, init: RequestInit): Promise<RawResponse>;
  /** Returns a client of the same platform with another key. */
  as(key: string): Client;
};

type Server = {
  url: string;
  hasChaos: boolean;
  document: ApiDocument;
  validate: ReturnType<typeof responseValidator>;
  output(): string;
};

export async function connect(
  platform: Pick<Deployment, "url" | "output"> & Partial<Pick<Deployment, "hasChaos">>,
): Promise<Client> {
  const { url, hasChaos = false } = platform;
  const document = JSON.parse(
    (await sendWithRetries(() => sendRequest(`${url}/api/v1/openapi.json`, {}))).text,
  ) as ApiDocument;
  return clientOf(
    { url, hasChaos, document, validate: responseValidator(document), output: () => platform.output() },
    OWNER_KEY,
  );
}

function clientOf(server: Server, ownKey: string): Client {
  const call = async (method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> => {
    const { key = ownKey, body, rawBody, headers = {} } = options;
    const sent = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
    const init: RequestInit = {
      method,
      redirect: "manual",
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(sent === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: sent,
    };
    const url = `${server.url}/api/v1${path}`;
    const isStream = headers["accept"]?.includes("event-stream") === true;
    const {
      status,
      headers: response,
      text,
    } = await (isStream ? readStream(url, init, server.hasChaos) : send(server, url, init, options)).catch(
      (cause: unknown) => {
        throw new Error(`${method} ${path} got no response. Output of the platform: ${server.output()}`, { cause });
      },
    );
    const isJson = /[/+]json\b/.test(response.get("content-type") ?? "");
    const answer = { status, headers: response, body: isJson && text !== "" ? JSON.parse(text) : text };
    if (!isStream) server.validate(method, `/api/v1${path.split("?")[0]}`, answer);
    return answer;
  };
  const must = async (method: string, path: string, options?: RequestOptions): Promise<any> => {
    const { status, body } = await call(method, path, options);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  return {
    ...server,
    key: ownKey,
    call,
    get: (path, options) => must("GET", path, options),
    post: (path, body, options = {}) => must("POST", path, { ...options, body }),
    put: (path, body, options = {}) => must("PUT", path, { ...options, body }),
    patch: (path, body, options = {}) => must("PATCH", path, { ...options, body }),
    delete: (path) => must("DELETE", path),
    fetch: (url, init = {}) =>
      server.hasChaos ? sendWithRetries(() => sendRequest(url, init)) : sendRequest(url, init),
    send: (url, init) => send(server, url, init, {}),
    as: (key) => clientOf(server, key),
  };
}

/** POST operations that accept no Idempotency-Key but may be repeated, because repetition changes nothing more. */
const IDEMPOTENT = /\/(source\/(validate|plan|apply)|interrupt|pause|resume|rotate|test-filter|dry-run|grants)$/;

/** Sends a request; retries it if processes of the platform are killed. */
async function send(
  { hasChaos, document }: Server,
  url: string,
  init: RequestInit,
  { isOnce = false, isAbsent = false, isRepeatable = false }: RequestOptions,
): Promise<RawResponse> {
  const headers = Object.fromEntries(new Headers(init.headers));
  if (init.method === "POST" && acceptsIdempotencyKey(document, new URL(url).pathname))
    headers["idempotency-key"] ??= randomUUID();
  const mayRepeat =
    isRepeatable ||
    isAbsent ||
    init.method !== "POST" ||
    headers["idempotency-key"] !== undefined ||
    IDEMPOTENT.test(new URL(url).pathname);
  if (!hasChaos || isOnce || !mayRepeat) return sendRequest(url, init);
  return sendWithRetries(
    async (attempt) => {
      const response = await sendRequest(url, { ...init, headers });
      // The first attempt deleted the resource, but its response was lost; the repeated DELETE returns 404.
      return init.method === "DELETE" && attempt > 1 && !isAbsent && response.status === 404
        ? { ...response, status: 204, text: "", bytes: Buffer.alloc(0) }
        : response;
    },
    isAbsent ? isUnavailable : undefined,
  );
}

/** Returns whether the API document declares an Idempotency-Key for a POST to this path. */
function acceptsIdempotencyKey({ paths }: ApiDocument, path: string): boolean {
  const exact = Object.keys(paths).find((template) => template === path);
  const template =
    exact ?? Object.keys(paths).find((one) => new RegExp(`^${one.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path));
  const parameters: { name: string }[] = paths[template ?? ""]?.["post"]?.parameters ?? [];
  return parameters.some(({ name }) => name.toLowerCase() === "idempotency-key");
}

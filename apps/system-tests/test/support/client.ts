import { randomUUID } from "node:crypto";
import { responseValidator, type Answer, type OpenApiDocument } from "@millwright/testing";
import { type Deployment, OWNER_KEY } from "@millwright/test-platform";
import { ask, patiently, type Told } from "./patient.ts";
import { readStream } from "./stream.ts";

export type Ask = {
  /** API key; null: anonymous. Default: the client's key. */
  key?: string | null;
  body?: unknown;
  /** Body sent unchanged, instead of `body`. */
  rawBody?: string;
  headers?: Readonly<Record<string, string>>;
  /** Disables retries, also if processes of the platform are killed. */
  isOnce?: boolean;
  /** The request may be repeated, whatever its method. */
  isHarmless?: boolean;
  /** The resource does not exist for the client: a 404 response to a repeated DELETE is not replaced by 204. */
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
  call(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** Returns the body of a successful response. Throws the problem otherwise. */
  get(path: string, ask?: Ask): Promise<any>;
  post(path: string, body?: unknown, ask?: Ask): Promise<any>;
  put(path: string, body: unknown, ask?: Ask): Promise<any>;
  patch(path: string, body: unknown, ask?: Ask): Promise<any>;
  delete(path: string): Promise<void>;
  /** Requests any URL of the platform, such as a page or a file. The request may be repeated. */
  fetch(url: string, init?: RequestInit): Promise<Told>;
  /** Like `fetch`, but sends an Idempotency-Key if the operation accepts one. */
  send(url: string, init: RequestInit): Promise<Told>;
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
  const document = JSON.parse((await patiently(() => ask(`${url}/api/v1/openapi.json`, {}))).text) as ApiDocument;
  return clientOf(
    { url, hasChaos, document, validate: responseValidator(document), output: () => platform.output() },
    OWNER_KEY,
  );
}

function clientOf(server: Server, ownKey: string): Client {
  const call = async (method: string, path: string, asked: Ask = {}): Promise<Answer> => {
    const { key = ownKey, body, rawBody, headers = {} } = asked;
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
      headers: told,
      text,
    } = await (isStream ? readStream(url, init, server.hasChaos) : send(server, url, init, asked)).catch(
      (cause: unknown) => {
        throw new Error(`${method} ${path} was not answered. The platform says: ${server.output()}`, { cause });
      },
    );
    const isJson = /[/+]json\b/.test(told.get("content-type") ?? "");
    const answer = { status, headers: told, body: isJson && text !== "" ? JSON.parse(text) : text };
    if (!isStream) server.validate(method, `/api/v1${path.split("?")[0]}`, answer);
    return answer;
  };
  const must = async (method: string, path: string, asked?: Ask): Promise<any> => {
    const { status, body } = await call(method, path, asked);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  return {
    ...server,
    key: ownKey,
    call,
    get: (path, asked) => must("GET", path, asked),
    post: (path, body, asked = {}) => must("POST", path, { ...asked, body }),
    put: (path, body, asked = {}) => must("PUT", path, { ...asked, body }),
    patch: (path, body, asked = {}) => must("PATCH", path, { ...asked, body }),
    delete: (path) => must("DELETE", path),
    fetch: (url, init = {}) => (server.hasChaos ? patiently(() => ask(url, init)) : ask(url, init)),
    send: (url, init) => send(server, url, init, {}),
    as: (key) => clientOf(server, key),
  };
}

/** POST operations that accept no Idempotency-Key but may be repeated, because repetition changes nothing more. */
const CONVERGING = /\/(source\/(validate|plan|apply)|interrupt|pause|resume|rotate|test-filter|dry-run)$/;

/** Sends a request; retries it if processes of the platform are killed. */
async function send(
  { hasChaos, document }: Server,
  url: string,
  init: RequestInit,
  { isOnce = false, isAbsent = false, isHarmless = false }: Ask,
): Promise<Told> {
  const headers = Object.fromEntries(new Headers(init.headers));
  if (init.method === "POST" && takesKey(document, new URL(url).pathname)) headers["idempotency-key"] ??= randomUUID();
  const mayRepeat =
    isHarmless ||
    init.method !== "POST" ||
    headers["idempotency-key"] !== undefined ||
    CONVERGING.test(new URL(url).pathname);
  if (!hasChaos || isOnce || !mayRepeat) return ask(url, init);
  return patiently(async (attempt) => {
    const told = await ask(url, { ...init, headers });
    // The first attempt deleted the resource, but its response was lost; the repeated DELETE returns 404.
    return init.method === "DELETE" && attempt > 1 && !isAbsent && told.status === 404
      ? { ...told, status: 204, text: "", bytes: Buffer.alloc(0) }
      : told;
  });
}

/** Returns whether the API document declares an Idempotency-Key for a POST to this path. */
function takesKey({ paths }: ApiDocument, path: string): boolean {
  const exact = Object.keys(paths).find((template) => template === path);
  const template =
    exact ?? Object.keys(paths).find((one) => new RegExp(`^${one.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path));
  const parameters: { name: string }[] = paths[template ?? ""]?.["post"]?.parameters ?? [];
  return parameters.some(({ name }) => name.toLowerCase() === "idempotency-key");
}

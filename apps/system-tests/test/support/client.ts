import { responseValidator, type Answer, type OpenApiDocument } from "@millwright/testing";
import { OWNER_KEY, type Platform } from "../../src/index.ts";

export type Ask = {
  /** null: anonymous. Default: the client's own. */
  key?: string | null;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  rawBody?: string;
  headers?: Readonly<Record<string, string>>;
};

/** The whole document of the public API, as the platform serves it. */
export type ApiDocument = OpenApiDocument & { readonly paths: Readonly<Record<string, Readonly<Record<string, any>>>>; readonly components?: any };

/** A client of a platform's public API. Every answer is checked against the API document. Paths are below `/api/v1`. */
export type Client = {
  readonly url: string;
  readonly key: string;
  readonly document: ApiDocument;
  call(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** The body of a success. Errors: the problem. */
  get(path: string, ask?: Ask): Promise<any>;
  post(path: string, body?: unknown, ask?: Ask): Promise<any>;
  put(path: string, body: unknown, ask?: Ask): Promise<any>;
  patch(path: string, body: unknown, ask?: Ask): Promise<any>;
  delete(path: string): Promise<void>;
  /** The same platform with another key. */
  as(key: string): Client;
};

export async function connect(platform: Pick<Platform, "url" | "output">): Promise<Client> {
  const document = (await (await fetch(`${platform.url}/api/v1/openapi.json`)).json()) as ApiDocument;
  return clientOf({ url: platform.url, document, validate: responseValidator(document), output: () => platform.output() }, OWNER_KEY);
}

type Server = { url: string; document: ApiDocument; validate: ReturnType<typeof responseValidator>; output(): string };

function clientOf(server: Server, ownKey: string): Client {
  const call = async (method: string, path: string, { key = ownKey, body, rawBody, headers = {} }: Ask = {}): Promise<Answer> => {
    const sent = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(`${server.url}/api/v1${path}`, {
      method,
      redirect: "manual",
      headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...(sent === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(sent === undefined ? {} : { body: sent }),
    }).catch((cause: unknown) => {
      throw new Error(`${method} ${path} was not answered. The platform says: ${server.output()}`, { cause });
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    const answer = { status: response.status, headers: response.headers, body: isJson && text !== "" ? JSON.parse(text) : text };
    if (!headers["accept"]?.includes("event-stream")) server.validate(method, `/api/v1${path.split("?")[0]}`, answer);
    return answer;
  };
  const must = async (method: string, path: string, ask?: Ask): Promise<any> => {
    const { status, body } = await call(method, path, ask);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  return {
    ...server, key: ownKey, call,
    get: (path, ask) => must("GET", path, ask),
    post: (path, body, ask = {}) => must("POST", path, { ...ask, ...(body === undefined ? {} : { body }) }),
    put: (path, body, ask = {}) => must("PUT", path, { ...ask, body }),
    patch: (path, body, ask = {}) => must("PATCH", path, { ...ask, body }),
    delete: (path) => must("DELETE", path),
    as: (key) => clientOf(server, key),
  };
}

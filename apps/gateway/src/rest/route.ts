import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import type { Caller, Verb } from "@millwright/caller";
import type { Reply } from "./reply.ts";

/**
 * `required`: 401 without a valid credential. `optional`: the credential can be absent, but must be valid if present.
 * `none`: credentials are ignored.
 */
export type RouteAuth = "required" | "optional" | "none";

/** Identifies a request that can be repeated safely. */
export type IdempotencyKey = {
  readonly key: string;
  /** Method and full path. The same key can be used for different operations. */
  readonly operation: string;
  /** SHA-256 (hex) of the body in canonical form. */
  readonly bodyHash: string;
};

/** Properties of a request beside its validated input. */
export type RequestInfo = {
  readonly requestId: string;
  readonly traceId: string;
  /** Path without query, as sent. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the client disconnects or the request times out. */
  readonly signal: AbortSignal;
  /** Returns the SHA-256 (hex) of the bearer credential, or "" without one. Rate limits are counted by it. */
  readonly credentialHash: () => string;
  /** Present when the route is `idempotent` and the client sent an `Idempotency-Key`. */
  readonly idempotency?: IdempotencyKey;
  readonly raw: { readonly req: IncomingMessage; readonly res: ServerResponse };
  /**
   * Authenticates the request's credential and returns its current caller. For streams, because a credential can be
   * revoked while its stream is open, and for routes with `auth: "none"` that authenticate some requests.
   * Errors: unauthenticated.
   */
  readonly authenticateAgain: () => Promise<Caller>;
};

export type RouteInput<
  P = Record<string, unknown>,
  Q = Record<string, unknown>,
  B = unknown,
  C = Caller | undefined,
> = {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly caller: C;
  readonly request: RequestInfo;
};

/** An additional success response, such as the 302 of a download. */
export type ExtraResponse = {
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly contentType?: string | readonly string[];
};

type Common = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Path below `/api/v1` unless `root`, with parameters as `{name}`. Literal segments take precedence over parameters,
   * in any order of declaration.
   */
  readonly path: string;
  /** One-line summary in the OpenAPI document. */
  readonly summary: string;
  readonly description?: string;
  /** Whether the operation extends the published API. */
  readonly extension?: boolean;
  /** The path is not below `/api/v1` (pages, blobs, errors), and the OpenAPI document does not list it. */
  readonly root?: boolean;
  /** Status of the success response. Default: 200 with a `response` schema, else 204. */
  readonly status?: number;
  readonly responses?: Readonly<Record<number, ExtraResponse>>;
  /** Media types of the success response beside JSON, for clients that name one of them in `Accept`. */
  readonly mediaTypes?: readonly string[];
  /**
   * Statuses of documented problems. 400 (with input), 401 (unless `none`), 404 (with path parameters), 409 (if
   * `idempotent`), 413 (with a body) and 500 are always documented.
   */
  readonly errors?: readonly number[];
  /** Permissions that the caller needs. Documentation only: the service that owns the data checks them. */
  readonly verbs?: readonly Verb[];
  /** Accepts an `Idempotency-Key` header, passed to the handler as `request.idempotency`. */
  readonly idempotent?: boolean;
  /**
   * The gateway stores the first response to an idempotency key and returns it to repeats, whatever the resource's
   * current state. For responses that are composed from current state. The service that creates the resource creates it
   * at most once per key, even if the response was lost before it was stored. For other idempotent routes, that service
   * stores the response.
   */
  readonly storesResponse?: boolean;
  /**
   * Restricts automatic retries by clients beyond the error's own `retryable`. `never`: no failure is retryable.
   * `not_after_5xx`: a 5xx is not retryable, because the request may have taken effect.
   */
  readonly automaticRetry?: "never" | "not_after_5xx";
  /** Accepts the active-team header. Documentation only. */
  readonly teamHeader?: boolean;
  /** Returns an entity tag, and 304 if `If-None-Match` contains it. Documentation only. */
  readonly conditional?: boolean;
  /**
   * Passes numbers of the body that a float cannot represent exactly as values that `JSON.stringify` writes unchanged.
   */
  readonly exactNumbers?: boolean;
  /** Maximum size of the body in bytes. Default: 1 MiB. */
  readonly bodyBytesMax?: number;
  /** Timeout of the handler in milliseconds. 0: none (streams). Default: 30 000. */
  readonly timeoutMs?: number;
};

/** A declared route with its type parameters erased. */
export type Route = Common & {
  readonly auth: RouteAuth;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly response?: z.ZodType;
  handler(input: RouteInput): Promise<unknown>;
};

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type CallerOf<A> = A extends "required" ? Caller : A extends "optional" ? Caller | undefined : undefined;

/**
 * An endpoint of the public API: routing, validation, documentation and handler in one declaration. The handler
 * translates the request, calls a use case or service, and returns a value of the `response` schema, or a `Reply` for
 * any other response.
 */
export type RouteDeclaration<A extends RouteAuth, P, Q, B, R> = Common & {
  /** Default `required`. */
  readonly auth?: A;
  /** All path parameters. A malformed `pathUid` is a 404. */
  readonly params?: P;
  /** Query parameters. Unknown parameters are ignored. Use the schemas of fields.ts. */
  readonly query?: Q;
  /** JSON body. `.optional()` permits requests without a body. Unknown members are ignored. */
  readonly body?: B;
  /** Body of the success response. Absent for 204 and redirects. */
  readonly response?: R;
  handler(
    input: RouteInput<Output<P>, Output<Q>, B extends z.ZodType ? z.output<B> : undefined, CallerOf<A>>,
  ): Promise<(R extends z.ZodType ? z.input<R> : undefined | void) | Reply>;
};

/** Declares an endpoint. Throws an Error if `params` does not describe exactly the parameters of the path. */
export function route<
  A extends RouteAuth = "required",
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  R extends z.ZodType | undefined = undefined,
>(declaration: RouteDeclaration<A, P, Q, B, R>): Route {
  const declared = declaration.path.match(/\{\w+\}/g)?.map((name) => name.slice(1, -1)) ?? [];
  const described = Object.keys(declaration.params?.shape ?? {});
  if (declared.toSorted().join() !== described.toSorted().join())
    throw new Error(`${declaration.path}: describe exactly its parameters`);
  return { ...declaration, auth: declaration.auth ?? "required" } as unknown as Route;
}

/** Returns the path with the `/api/v1` prefix, unless the route is a `root` route. */
export const fullPath = ({ path, root }: Pick<Route, "path" | "root">): string => (root ? path : `/api/v1${path}`);

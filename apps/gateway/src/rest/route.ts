import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import type { Caller, Verb } from "@millwright/caller";
import type { Reply } from "./reply.ts";

/** `required`: 401 without a valid credential. `optional`: anonymous too, but a credential must be valid. `none`: credentials are not looked at. */
export type RouteAuth = "required" | "optional" | "none";

/** A retry-safe create: what identifies the request (fields-runs §1.3). */
export type IdempotencyKey = {
  readonly key: string;
  /** Method and full path, so that one key may be used for two things. */
  readonly operation: string;
  /** SHA-256 (hex) of the body in canonical form. */
  readonly bodyHash: string;
};

/** What a handler may know about the request beside its validated input. */
export type RequestInfo = {
  readonly requestId: string;
  readonly traceId: string;
  /** Path without query, as sent. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the client goes away or the time for the answer is over. */
  readonly signal: AbortSignal;
  /** SHA-256 (hex) of the bearer credential, "" without one: what is counted by API key. */
  readonly credentialHash: () => string;
  /** Present when the route is `idempotent` and the client sent an `Idempotency-Key`. */
  readonly idempotency?: IdempotencyKey;
  readonly raw: { readonly req: IncomingMessage; readonly res: ServerResponse };
  /** Whom the same credential stands for now; for answers that outlive the first look. Errors: unauthenticated. */
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

/** A further success answer, such as the 302 of a download. */
export type ExtraResponse = {
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly contentType?: string | readonly string[];
};

type Common = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below `/api/v1` unless `root`; parameters as `{name}`. Literal paths win over parameters whatever the order of declaration. */
  readonly path: string;
  /** One line for the reader of the OpenAPI document. */
  readonly summary: string;
  readonly description?: string;
  /** Whether the operation extends the published API. */
  readonly extension?: boolean;
  /** Lives outside `/api/v1` (pages, blobs, errors) and outside the OpenAPI document. */
  readonly root?: boolean;
  /** Status of success. Default 200. */
  readonly status?: number;
  readonly responses?: Readonly<Record<number, ExtraResponse>>;
  /** Media types of success beside JSON, for clients that name one of them in `Accept`. */
  readonly mediaTypes?: readonly string[];
  /** Statuses of documented problems; 400 (with input), 401 (unless `none`), 404 (with path ids) and 500 are always documented. */
  readonly errors?: readonly number[];
  /** Permissions the caller needs, for the document; the owner of the data decides. */
  readonly verbs?: readonly Verb[];
  /** Takes an `Idempotency-Key` header; the handler finds it in `request.idempotency`. */
  readonly idempotent?: boolean;
  /**
   * The answer to a key is kept here, and told again whatever has become of the thing: for answers that are put together of what is now. Whoever makes the
   * thing does so once per key, also when the answer was lost before it was kept. The others' answers are kept by whoever makes the thing.
   */
  readonly keepsAnswer?: boolean;
  /** What clients may retry by themselves beyond what the error allows. `never`: no failure at all; `not_after_5xx`: it may have taken effect. */
  readonly automaticRetry?: "never" | "not_after_5xx";
  /** Takes the active-team header; documented only. */
  readonly teamHeader?: boolean;
  /** Answers with an entity tag, and with 304 to an `If-None-Match` that has it; documented only. */
  readonly conditional?: boolean;
  /** Numbers of the body that a float would change reach the handler as values that `JSON.stringify` writes as they are. */
  readonly exactNumbers?: boolean;
  /** Default 1 MiB. */
  readonly bodyBytesMax?: number;
  /** Time for the whole answer; 0: unlimited (streams). Default 30 s. */
  readonly timeoutMs?: number;
};

/** One route as the REST layer holds it, whatever its types were. */
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
 * One endpoint of the public API: routing, validation, documentation and handler in one place. The handler translates
 * and calls; it answers a value of the `response` schema, or a `Reply` for anything else.
 */
export type RouteDeclaration<A extends RouteAuth, P, Q, B, R> = Common & {
  /** Default `required`. */
  readonly auth?: A;
  /** Path parameters, all of them; `pathUid` answers 404 to a malformed id. */
  readonly params?: P;
  /** Query parameters; unknown ones are ignored. Use the schemas of fields.ts. */
  readonly query?: Q;
  /** JSON body. Make it `.optional()` where no body is fine; unknown members are ignored. */
  readonly body?: B;
  /** Body of success; absent for 204 and redirects. */
  readonly response?: R;
  handler(
    input: RouteInput<Output<P>, Output<Q>, B extends z.ZodType ? z.output<B> : undefined, CallerOf<A>>,
  ): Promise<(R extends z.ZodType ? z.input<R> : undefined | void) | Reply>;
};

/** Declares an endpoint. */
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

/** The path as clients see it. */
export const fullPath = ({ path, root }: Pick<Route, "path" | "root">): string => (root ? path : `/api/v1${path}`);

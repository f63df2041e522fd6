import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { blobKeySegments } from "./blob-key.ts";
import type { SignOptions } from "./blob-store.ts";

const PATH_PREFIX = "/blobs/";

/** What a signed URL permits. */
export type SignedRequest = {
  readonly key: string;
  readonly method: "GET" | "PUT";
  readonly filename?: string;
  readonly contentType?: string;
  readonly sizeBytesMax?: number;
};

type Signing = { readonly publicUrl: string; readonly signingKey: Uint8Array; readonly clock: Clock };

/** `{public}/blobs/<key>?m&exp[&name][&type][&max]&sig`: every parameter is signed. */
export function signUrl(signing: Signing, key: string, options: SignOptions): string {
  const query = new URLSearchParams({ m: options.method, exp: String(Math.floor(signing.clock.now().getTime() / 1000) + options.expiresInSeconds) });
  if (options.filename !== undefined) query.set("name", options.filename);
  if (options.contentType !== undefined) query.set("type", options.contentType);
  if (options.sizeBytesMax !== undefined) query.set("max", String(options.sizeBytesMax));
  query.set("sig", signature(signing.signingKey, key, query).toString("base64url"));
  return `${signing.publicUrl}${PATH_PREFIX}${key}?${query.toString()}`;
}

/**
 * Checks a request for `/blobs/<key>?…` and says what it permits. HEAD counts as GET; parameters of others are not tolerated.
 * The same error for every fault, so that nothing is learnt by trying. Errors: signed_url_invalid (permission_denied).
 *
 * @param target path and query as received, such as "/blobs/runs/1/log?m=GET&…"
 */
export function verifySignedRequest(signing: Pick<Signing, "signingKey" | "clock">, method: string, target: string): SignedRequest {
  const url = URL.parse(target, "http://localhost");
  if (!url?.pathname.startsWith(PATH_PREFIX)) throw invalid();
  const key = validKey(url.pathname.slice(PATH_PREFIX.length));
  const query = url.searchParams;
  const given = Buffer.from(query.get("sig") ?? "", "base64url");
  query.delete("sig");
  const expected = signature(signing.signingKey, key, query);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw invalid();
  if (Number(query.get("exp")) * 1000 <= signing.clock.now().getTime()) throw invalid();
  const permitted = query.get("m");
  const asked = method === "HEAD" ? "GET" : method;
  if (permitted !== asked || (permitted !== "GET" && permitted !== "PUT")) throw invalid();
  const [filename, contentType, max] = [query.get("name"), query.get("type"), query.get("max")];
  return {
    key,
    method: permitted,
    ...(filename === null ? {} : { filename }),
    ...(contentType === null ? {} : { contentType }),
    ...(max === null ? {} : { sizeBytesMax: Number(max) }),
  };
}

function validKey(key: string): string {
  try {
    return blobKeySegments(key).join("/");
  } catch (cause) {
    throw invalid(cause);
  }
}

const signature = (signingKey: Uint8Array, key: string, query: URLSearchParams): Buffer =>
  createHmac("sha256", signingKey)
    .update(JSON.stringify([key, [...query]]))
    .digest();

const invalid = (cause?: unknown): DomainError =>
  new DomainError({ kind: "permission_denied", reason: "signed_url_invalid", message: "The link is not valid, or has expired.", cause });

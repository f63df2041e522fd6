import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { blobKeySegments } from "./blob-key.ts";
import type { BlobContent, DownloadOptions, OpenUploadOptions, UploadOptions } from "./blob-store.ts";

const PATH_PREFIX = "/blobs/";

/** The request that a signed URL of the directory store permits. */
export type SignedRequest = { readonly key: string; readonly contentType: string } & (
  | { readonly method: "GET"; readonly filename?: string }
  | { readonly method: "PUT"; readonly expected: BlobContent }
  | { readonly method: "PUT"; readonly sizeMax: number }
);

export type UrlSigning = {
  readonly signingKey: Uint8Array;
  /** URLs that these keys signed are valid, too, such as those of the previous key during a rotation. */
  readonly acceptedKeys?: readonly Uint8Array[];
  readonly clock: Clock;
};

type Method = SignedRequest["method"];
type Signing = UrlSigning & { readonly publicUrl: string };

/** `{public}/blobs/<key>?m&exp&type…&sig`: every parameter is signed. */
export const signDownload = (signing: Signing, key: string, { filename, ...options }: DownloadOptions): string =>
  sign(signing, "GET", key, options, filename === undefined ? {} : { name: filename });

/** As above. */
export const signUpload = (signing: Signing, key: string, { size, sha256, ...options }: UploadOptions): string =>
  sign(signing, "PUT", key, options, { size: String(size), sha256 });

/** As above. */
export const signOpenUpload = (signing: Signing, key: string, { sizeMax, ...options }: OpenUploadOptions): string =>
  sign(signing, "PUT", key, options, { max: String(sizeMax) });

function sign(
  signing: Signing,
  method: Method,
  key: string,
  { expiresInSeconds, contentType }: { expiresInSeconds: number; contentType: string },
  more: Record<string, string>,
): string {
  const expires = Math.floor(signing.clock.now().getTime() / 1000) + expiresInSeconds;
  const query = new URLSearchParams({ m: method, exp: String(expires), type: contentType, ...more });
  query.set("sig", signature(signing.signingKey, key, query).toString("base64url"));
  return `${signing.publicUrl}${PATH_PREFIX}${blobKeySegments(key).join("/")}?${query.toString()}`;
}

/**
 * Verifies a request for `/blobs/<key>?…` and returns what it permits. HEAD counts as GET; unknown parameters are
 * rejected. Every fault gives the same error, so that probing reveals nothing. Errors: signed_url_invalid
 * (permission_denied).
 *
 * @param target path and query as received, such as "/blobs/runs/1/log?m=GET&…"
 */
export function verifySignedRequest(
  { signingKey, acceptedKeys = [], clock }: UrlSigning,
  method: string,
  target: string,
): SignedRequest {
  const url = URL.parse(target, "http://localhost");
  if (!url?.pathname.startsWith(PATH_PREFIX)) throw invalid();
  const key = validKey(url.pathname.slice(PATH_PREFIX.length));
  const query = url.searchParams;
  const given = Buffer.from(query.get("sig") ?? "", "base64url");
  query.delete("sig");
  const isSigned = [signingKey, ...acceptedKeys].some((signer) => {
    const expected = signature(signer, key, query);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isSigned) throw invalid();
  if (Number(query.get("exp")) * 1000 <= clock.now().getTime()) throw invalid();
  const permitted = query.get("m");
  if (permitted !== (method === "HEAD" ? "GET" : method)) throw invalid();
  const [contentType, filename] = [query.get("type") ?? "", query.get("name")];
  if (permitted === "GET") return { key, contentType, method: "GET", filename: filename ?? undefined };
  const sizeMax = query.get("max");
  if (sizeMax !== null) return { key, contentType, method: "PUT", sizeMax: Number(sizeMax) };
  return {
    key,
    contentType,
    method: "PUT",
    expected: { size: Number(query.get("size")), sha256: query.get("sha256") ?? "" },
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
  new DomainError({
    kind: "permission_denied",
    reason: "signed_url_invalid",
    message: "The link is not valid or has expired. Request a new one.",
    cause,
  });

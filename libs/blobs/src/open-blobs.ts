import type { Clock } from "@millwright/clock";
import { optional, type Setting } from "@millwright/config";
import type { BlobStore } from "./blob-store.ts";
import { s3Blobs } from "./s3-blobs.ts";

/** Where blobs are stored; exactly one of the two settings. */
export const blobSettings = {
  /** `s3://bucket?endpoint=…&region=…`: a bucket for the platform alone, on S3 or an S3-compatible server. */
  blobUrl: optional.url("MILLWRIGHT_BLOB_URL"),
  /** A directory that all orchestrators and gateways share. */
  blobDir: optional.string("BLOB_DIR"),
};

/** Credentials and region of a bucket. */
export const bucketSettings = {
  /** Region of the bucket, if the URL has none. */
  awsRegion: optional.string("AWS_REGION"),
  awsAccessKeyId: optional.string("AWS_ACCESS_KEY_ID"),
  awsSecretAccessKey: optional.secret("AWS_SECRET_ACCESS_KEY"),
  /** For temporary credentials. */
  awsSessionToken: optional.secret("AWS_SESSION_TOKEN"),
};

type ValuesOf<S> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** Returns the directory; undefined for a bucket. Throws a plain Error unless exactly one of the two is set. */
export function blobDirectory({ blobUrl, blobDir }: ValuesOf<typeof blobSettings>): string | undefined {
  if ((blobUrl === undefined) === (blobDir === undefined))
    throw invalid("set MILLWRIGHT_BLOB_URL or BLOB_DIR, and not both");
  return blobDir;
}

const PARAMETERS: ReadonlySet<string> = new Set(["endpoint", "region"]);

/**
 * Opens the bucket that `blobUrl` names. With an endpoint, buckets are path segments; on AWS they are hosts.
 * Throws a plain Error that names the faulty variables, never their values.
 */
export function openBucket(blobUrl: string, settings: ValuesOf<typeof bucketSettings>, clock: Clock): BlobStore {
  const { hostname: bucket, protocol, pathname, searchParams } = new URL(blobUrl);
  const [endpoint, region = settings.awsRegion] = ["endpoint", "region"].map(
    (name) => searchParams.get(name) ?? undefined,
  );
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsSessionToken: sessionToken } = settings;
  const isKnown =
    protocol === "s3:" &&
    /^[a-z0-9][a-z0-9.-]+$/.test(bucket) &&
    ["", "/"].includes(pathname) &&
    [...searchParams.keys()].every((name) => PARAMETERS.has(name));
  if (!isKnown) throw invalid("MILLWRIGHT_BLOB_URL must be s3://bucket, with endpoint and region as parameters");
  if (endpoint !== undefined && !/^https?:\/\//.test(endpoint))
    throw invalid("the endpoint of MILLWRIGHT_BLOB_URL must be an http(s) URL");
  if (endpoint === undefined && region === undefined)
    throw invalid("MILLWRIGHT_BLOB_URL needs a region, or AWS_REGION");
  if (!accessKeyId || !secretAccessKey)
    throw invalid("MILLWRIGHT_BLOB_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  const bucketUrl = endpoint === undefined ? awsUrl(bucket, region!) : `${endpoint.replace(/\/+$/, "")}/${bucket}`;
  return s3Blobs({
    bucketUrl,
    region: region ?? "us-east-1",
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
    clock,
  });
}

/** A bucket with dots also becomes a path segment: the certificate covers one level of subdomains. */
const awsUrl = (bucket: string, region: string): string =>
  bucket.includes(".")
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`;

const invalid = (fault: string): Error => new Error(`Invalid configuration:\n  ${fault}`);

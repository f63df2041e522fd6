import type { Clock } from "@millwright/clock";
import { optional, type Setting } from "@millwright/config";
import type { BlobStore } from "./blob-store.ts";
import { s3Blobs } from "./s3-blobs.ts";

/** Where blobs are: one of the two. */
export const blobSettings = {
  /** `s3://bucket?endpoint=…&region=…`: a bucket of the platform's own on S3, or on another server that speaks its protocol. */
  blobUrl: optional.url("MILLWRIGHT_BLOB_URL"),
  /** A directory that all orchestrators and gateways see. */
  blobDir: optional.string("BLOB_DIR"),
};

/** What it takes to use a bucket. */
export const bucketSettings = {
  /** Region of the bucket where the URL names none. */
  awsRegion: optional.string("AWS_REGION"),
  awsAccessKeyId: optional.string("AWS_ACCESS_KEY_ID"),
  awsSecretAccessKey: optional.secret("AWS_SECRET_ACCESS_KEY"),
  /** With temporary credentials. */
  awsSessionToken: optional.secret("AWS_SESSION_TOKEN"),
};

type ValuesOf<S> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** The directory; undefined for a bucket. Errors: a plain Error when not exactly one of the two is set. */
export function blobDirectory({ blobUrl, blobDir }: ValuesOf<typeof blobSettings>): string | undefined {
  if ((blobUrl === undefined) === (blobDir === undefined))
    throw invalid("set MILLWRIGHT_BLOB_URL or BLOB_DIR, and not both");
  return blobDir;
}

const PARAMETERS: ReadonlySet<string> = new Set(["endpoint", "region"]);

/**
 * The bucket that `blobUrl` names. With an endpoint, buckets are paths below it; on AWS they are hosts.
 * Errors: a plain Error that names the variables at fault, never their values.
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

/** A bucket with dots is a path there, too: the certificate has one level. */
const awsUrl = (bucket: string, region: string): string =>
  bucket.includes(".")
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`;

const invalid = (fault: string): Error => new Error(`Invalid configuration:\n  ${fault}`);

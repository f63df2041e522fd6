import { systemClock, type Clock } from "@millwright/clock";
import { optional, type Rule, type ValuesOf } from "@millwright/config";
import type { BlobStore } from "./blob-store.ts";
import { s3Blobs } from "./s3-blobs.ts";

/** Where blobs are stored; exactly one of the two settings. */
export const blobSettings = {
  blobUrl: optional.url(
    "MILLWRIGHT_BLOB_URL",
    "`s3://bucket?endpoint=…&region=…`: [a bucket](files.md) for the platform alone, on S3 or an S3-compatible server.",
  ),
  blobDir: optional.string(
    "BLOB_DIR",
    "A directory that all orchestrators and gateways mount. Either this or the bucket.",
  ),
};

/** Credentials and region of a bucket. */
export const bucketSettings = {
  awsRegion: optional.string("AWS_REGION", "Region of the bucket, if the URL has none."),
  awsAccessKeyId: optional.string("AWS_ACCESS_KEY_ID", "Credentials of the bucket; required with one."),
  awsSecretAccessKey: optional.secret("AWS_SECRET_ACCESS_KEY", "Credentials of the bucket; required with one."),
  awsSessionToken: optional.secret("AWS_SESSION_TOKEN", "For temporary credentials."),
};

type BlobValues = ValuesOf<typeof blobSettings>;
type BucketValues = ValuesOf<typeof bucketSettings>;

/** Blobs are in a bucket or in a directory. */
export const blobRule: Rule<BlobValues> = {
  variables: ["MILLWRIGHT_BLOB_URL", "BLOB_DIR"],
  check: (values) => void blobDirectory(values),
};

/** A bucket needs a region and credentials. */
export const bucketRule: Rule<Pick<BlobValues, "blobUrl"> & BucketValues> = {
  variables: ["MILLWRIGHT_BLOB_URL"],
  check: (values) => void (values.blobUrl && openBucket(values.blobUrl, values, systemClock)),
};

/** Returns the directory; undefined for a bucket. Throws a plain Error unless exactly one of the two is set. */
export function blobDirectory({ blobUrl, blobDir }: BlobValues): string | undefined {
  if ((blobUrl === undefined) === (blobDir === undefined))
    throw new Error("Set MILLWRIGHT_BLOB_URL or BLOB_DIR, and not both.");
  return blobDir;
}

const PARAMETERS: ReadonlySet<string> = new Set(["endpoint", "region"]);

/**
 * Opens the bucket that `blobUrl` names. With an endpoint, buckets are path segments; on AWS they are hosts.
 * Throws a plain Error that names the faulty variables, never their values.
 */
export function openBucket(blobUrl: string, settings: BucketValues, clock: Clock): BlobStore {
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
  if (!isKnown) throw new Error("MILLWRIGHT_BLOB_URL must be s3://bucket, with endpoint and region as parameters.");
  if (endpoint !== undefined && !/^https?:\/\//.test(endpoint))
    throw new Error("The endpoint of MILLWRIGHT_BLOB_URL must be an http(s) URL.");
  if (endpoint === undefined && region === undefined)
    throw new Error("MILLWRIGHT_BLOB_URL needs a region, or AWS_REGION.");
  if (!accessKeyId || !secretAccessKey)
    throw new Error("MILLWRIGHT_BLOB_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.");
  const bucketUrl = endpoint === undefined ? awsUrl(bucket, region!) : `${endpoint.replace(/\/+$/, "")}/${bucket}`;
  return s3Blobs({
    bucketUrl,
    region: region ?? "us-east-1",
    credentials: { accessKeyId, secretAccessKey, sessionToken },
    clock,
  });
}

/** A bucket with dots also becomes a path segment: the certificate covers one level of subdomains. */
const awsUrl = (bucket: string, region: string): string =>
  bucket.includes(".")
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`;

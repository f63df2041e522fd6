import { createHash } from "node:crypto";
import { AwsClient, AwsV4Signer } from "aws4fetch";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";

export type S3Options = {
  /** URL of the bucket; objects are below it. */
  readonly bucketUrl: string;
  readonly region: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  readonly clock: Clock;
  /** Keys per page of a list; default 1000, the maximum. */
  readonly pageSize?: number;
};

type S3Method = "GET" | "PUT" | "DELETE";
type S3Request = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Blob;
  readonly query?: Readonly<Record<string, string>>;
};

const RETRIES = 3;
const EMPTY_SHA256 = createHash("sha256").digest("hex");

/** Requests to one bucket, signed with AWS Signature Version 4. */
export class S3Client {
  readonly #options: S3Options;
  readonly #client: AwsClient;

  constructor(options: S3Options) {
    this.#options = options;
    this.#client = new AwsClient({ ...options.credentials, region: options.region, service: "s3", retries: RETRIES });
  }

  /**
   * `path` is the object's path; "" is the bucket itself. Returns undefined if the object does not exist.
   * Errors: blob_store_unavailable for transient failures; otherwise a plain Error with S3's message, also if the
   * bucket does not exist.
   */
  async send(method: S3Method, path: string, { headers, body, query }: S3Request = {}): Promise<Response | undefined> {
    const init = {
      method,
      headers: { "x-amz-content-sha256": EMPTY_SHA256, ...headers },
      body,
      aws: { datetime: this.#now() },
    };
    const response = await this.#client.fetch(this.#url(path, query), init).catch((cause: unknown) => {
      throw unavailable(cause);
    });
    if (response.ok) return response;
    const code = textOf("Code", await response.text());
    if (response.status === 404 && code === "NoSuchKey") return undefined;
    const message = `S3 responded with ${response.status} ${code ?? ""} to ${method}`;
    throw response.status >= 500 || response.status === 429 ? unavailable(new Error(message)) : new Error(message);
  }

  /** Returns a URL for one request without authorization; all `headers` are signed and must be sent unchanged. */
  async sign(
    method: S3Method,
    path: string,
    expiresInSeconds: number,
    { headers = {}, query = {} }: Omit<S3Request, "body"> = {},
  ): Promise<string> {
    const url = this.#url(path, { ...query, "X-Amz-Expires": String(expiresInSeconds) });
    const { region, credentials } = this.#options;
    const signer = new AwsV4Signer({
      ...credentials,
      region,
      service: "s3",
      datetime: this.#now(),
      method,
      url,
      headers,
      signQuery: true,
      allHeaders: true,
    });
    return (await signer.sign()).url.toString();
  }

  #url(path: string, query: Readonly<Record<string, string>> = {}): string {
    const url = new URL(path === "" ? this.#options.bucketUrl : `${this.#options.bucketUrl}/${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.toString();
  }

  #now(): string {
    return this.#options.clock
      .now()
      .toISOString()
      .replaceAll(/[:-]|\.\d{3}/g, "");
  }
}

/** Returns the text of the first element of that name. */
export const textOf = (element: string, xml: string): string | undefined =>
  unquoted(new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1]);

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const unquoted = (text: string | undefined): string | undefined =>
  text?.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return NAMED[name] ?? whole;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });

const unavailable = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "blob_store_unavailable",
    message: "The file store is not reachable. Retry in a few seconds.",
    cause,
  });

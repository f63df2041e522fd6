import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

export type S3Server = {
  /** The bucket in the form of `MILLWRIGHT_BLOB_URL`. */
  readonly blobUrl: string;
  /** URL of the bucket. */
  readonly bucketUrl: string;
  /** The credentials by environment variable. */
  readonly env: { readonly AWS_ACCESS_KEY_ID: string; readonly AWS_SECRET_ACCESS_KEY: string };
  /** Requests such as "PUT /bucket/artifacts/1", oldest first, including rejected ones. */
  readonly requests: string[];
  close(): Promise<void>;
};

const BUCKET = "millwright";
const REGION = "eu-test-1";

/**
 * Starts an S3 server on the loopback address, with one bucket. s3rver checks signatures, signed headers and expiry;
 * this adds what it lacks: requests without a signature are rejected, and so are bodies with another SHA-256 than the
 * signed one.
 */
export async function s3Server(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), "millwright-s3-"));
  const inner = new Worker(new URL("s3rver-thread.mjs", import.meta.url), {
    workerData: { directory, bucket: BUCKET },
  });
  const [innerPort] = (await once(inner, "message")) as [number];
  const requests: string[] = [];
  const outer = createServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split("?")[0]}`);
    void forward(innerPort, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => outer.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(outer.address() as AddressInfo).port}`;
  return {
    blobUrl: `s3://${BUCKET}?endpoint=${endpoint}&region=${REGION}`,
    bucketUrl: `${endpoint}/${BUCKET}`,
    env: { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" },
    requests,
    async close() {
      outer.closeAllConnections();
      await new Promise((resolve) => outer.close(resolve));
      await inner.terminate();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function forward(innerPort: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = Buffer.concat(await request.toArray());
  const fault = faultOf(request, body);
  if (fault)
    return void response
      .writeHead(fault.status, { "content-type": "application/xml" })
      .end(`<Error><Code>${fault.code}</Code></Error>`);
  const { method, url: path, headers } = request;
  await new Promise<void>((resolve, reject) => {
    const passed = httpRequest(
      { host: "127.0.0.1", port: innerPort, method, path, headers, agent: false },
      (innerResponse) => {
        response.writeHead(innerResponse.statusCode ?? 500, innerResponse.headers);
        innerResponse.pipe(response).once("close", resolve);
      },
    );
    passed.once("error", reject).end(body);
  });
}

function faultOf({ headers, url = "" }: IncomingMessage, body: Buffer): { status: number; code: string } | undefined {
  if (headers.authorization === undefined && !url.includes("X-Amz-Signature="))
    return { status: 403, code: "AccessDenied" };
  const announced = headers["x-amz-content-sha256"];
  const isHash = typeof announced === "string" && /^[0-9a-f]{64}$/.test(announced);
  if (isHash && announced !== createHash("sha256").update(body).digest("hex"))
    return { status: 400, code: "XAmzContentSHA256Mismatch" };
  return undefined;
}

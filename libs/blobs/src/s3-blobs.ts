import { openAsBlob } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { contentDisposition, headerType } from "./blob-headers.ts";
import { blobKeySegments } from "./blob-key.ts";
import type { BlobContent, BlobStore, ListedBlob } from "./blob-store.ts";
import { ContentCheck } from "./content-check.ts";
import { S3Client, textOf, type S3Options } from "./s3-client.ts";

/**
 * Stores blobs in a bucket of S3 or an S3-compatible server. Every upload is signed with its SHA-256, so that S3
 * rejects other bytes. S3 links have no `nosniff` header, so content that a browser could run is served as a download.
 */
export function s3Blobs(options: S3Options): BlobStore {
  const s3 = new S3Client(options);
  const pathOf = (key: string): string => blobKeySegments(key).join("/");
  return {
    async put(key, body, { contentType, ...bounds }) {
      const path = pathOf(key);
      return measured(body, new ContentCheck(bounds), async (content, blob) => {
        const response = await s3.send("PUT", path, {
          headers: { "content-type": headerType(contentType), "x-amz-content-sha256": content.sha256 },
          body: blob,
        });
        await response?.body?.cancel();
      });
    },
    async get(key) {
      const response = await s3.send("GET", pathOf(key));
      if (!response) return undefined;
      const body = response.body ? Readable.fromWeb(response.body) : Readable.from([]);
      return {
        body,
        size: Number(response.headers.get("content-length")),
        contentType: response.headers.get("content-type") ?? "",
      };
    },
    async delete(key) {
      await (await s3.send("DELETE", pathOf(key)))?.body?.cancel();
    },
    list: (folder) => list(s3, `${pathOf(folder)}/`, options.pageSize ?? PAGE_SIZE_MAX),
    deleteDrafts: async () => {}, // S3 discards an interrupted PUT
    signDownload: async (key, { expiresInSeconds, contentType, filename }) =>
      s3.sign("GET", pathOf(key), expiresInSeconds, {
        query: {
          "response-content-type": headerType(contentType),
          "response-content-disposition": contentDisposition(contentType, filename),
          "response-cache-control": "private, no-store",
        },
      }),
    async signUpload(key, { expiresInSeconds, contentType, size, sha256 }) {
      const headers = { "content-type": headerType(contentType), "x-amz-content-sha256": sha256 };
      return {
        url: await s3.sign("PUT", pathOf(key), expiresInSeconds, {
          headers: { ...headers, "content-length": String(size) },
        }),
        headers,
      };
    },
    signOpenUpload: async (key, { expiresInSeconds, contentType }) => ({
      url: await s3.sign("PUT", pathOf(key), expiresInSeconds),
      headers: { "content-type": headerType(contentType) },
    }),
  };
}

/** S3 needs size and hash before the first byte, so a stream is first written to a temporary file. */
async function measured(
  body: Uint8Array | Readable,
  check: ContentCheck,
  send: (content: BlobContent, blob: Blob) => Promise<void>,
): Promise<BlobContent> {
  if (!(body instanceof Readable)) {
    check.add(body);
    const content = check.end();
    await send(content, new Blob([new Uint8Array(body)]));
    return content;
  }
  const dir = await mkdtemp(join(tmpdir(), "millwright-blob-"));
  try {
    const path = join(dir, "content");
    await writeFile(path, checked(body, check), { mode: 0o600 });
    const content = check.end();
    await send(content, await openAsBlob(path));
    return content;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function* checked(body: AsyncIterable<Uint8Array>, check: ContentCheck): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    check.add(chunk);
    yield chunk;
  }
}

const PAGE_SIZE_MAX = 1000;

/** S3 lists keys in lexical order. */
async function* list(s3: S3Client, prefix: string, pageSize: number): AsyncGenerator<ListedBlob> {
  for (let after = "", hasMore = true; hasMore;) {
    const query = {
      "list-type": "2",
      prefix,
      "max-keys": String(pageSize),
      ...(after === "" ? {} : { "start-after": after }),
    };
    const xml = (await (await s3.send("GET", "", { query }))?.text()) ?? "";
    const page = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, entry = ""]) => ({
      key: textOf("Key", entry) ?? "",
      storedAt: new Date(textOf("LastModified", entry) ?? ""),
    }));
    yield* page.filter(({ key }) => isValidKey(key));
    after = page.at(-1)?.key ?? "";
    hasMore = textOf("IsTruncated", xml) === "true" && after !== "";
  }
}

function isValidKey(key: string): boolean {
  try {
    return blobKeySegments(key).length > 0;
  } catch {
    return false;
  }
}

import { randomBytes, randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { BlobStore } from "@millwright/blobs";
import { findingsAt, messageOf, type Finding } from "./finding.ts";

/** Checks that files can be written, read and deleted, with a file of its own. Never rejects. */
export async function checkBlobs(store: BlobStore, address: string): Promise<Finding[]> {
  const finding = findingsAt(address);
  const key = `preflight/${randomUUID()}`;
  const content = randomBytes(64);
  let step = "written";
  try {
    await store.put(key, content, { contentType: "application/octet-stream" });
    step = "read";
    const stored = await store.get(key);
    if (stored === undefined || !(await buffer(stored.body)).equals(content))
      return [finding("files", "a file that was written is not read back", REMEDY)];
    step = "deleted";
    await store.delete(key);
    return [finding("files")];
  } catch (error) {
    return [finding("files", `a file cannot be ${step}: ${causeOf(error)}`, REMEDY)];
  }
}

const REMEDY = "Check owner and mode of the directory, or endpoint, credentials and permissions of the bucket.";

const causeOf = (error: unknown): string => messageOf((error as { cause?: unknown }).cause ?? error);

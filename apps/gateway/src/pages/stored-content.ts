import { Readable } from "node:stream";
import { serviceUnavailable } from "@millwright/errors";
import { redirect, Reply } from "../rest/index.ts";

/** Headers of the bucket that are passed on. */
const PASSED = ["content-type", "content-length", "content-disposition"] as const;

/**
 * Returns the content of a stored file from this server: browsers do not show files of other hosts on pages of the
 * console. Files of a directory are on this server already, files of a bucket are streamed. They may come from an agent,
 * so they never run as a page. Errors: service_unavailable if the bucket does not return the file.
 */
export async function storedContent(downloadUrl: string, publicUrl: string, signal: AbortSignal): Promise<Reply> {
  const headers = { "cache-control": "private, no-store", "x-content-type-options": "nosniff" };
  if (new URL(downloadUrl).origin === new URL(publicUrl).origin) return redirect(downloadUrl, headers);
  const response = await fetch(downloadUrl, { signal }).catch((error: unknown) => {
    throw serviceUnavailable(error);
  });
  if (!response.ok || !response.body) {
    await response.body?.cancel();
    throw serviceUnavailable(new Error(`The bucket returned ${response.status}.`));
  }
  const passed = PASSED.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return new Reply(200, Readable.fromWeb(response.body), {
    ...headers,
    ...Object.fromEntries(passed),
    "content-security-policy": "default-src 'none'; sandbox",
    "referrer-policy": "no-referrer",
  });
}

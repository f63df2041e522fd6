/** Types a browser may display inline; all others are downloaded. None of them can run script. */
const INLINE: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "text/plain",
  "application/json",
  "application/pdf",
]);

/** Returns a content type that fits into one header line, whatever its uploader declared. */
export const headerType = (contentType: string): string =>
  contentType
    .replaceAll(/[^\x20-\x7e]/g, "")
    .trim()
    .slice(0, 255) || "application/octet-stream";

/**
 * Returns the headers under which a blob is served. A blob may come from an agent and is served on the API's origin, so
 * it must never run as a page. `size` in bytes.
 */
export function blobHeaders(
  blob: { readonly contentType: string; readonly size: number },
  filename?: string,
): Record<string, string> {
  return {
    "Content-Type": headerType(blob.contentType),
    "Content-Length": String(blob.size),
    "Content-Disposition": contentDisposition(blob.contentType, filename),
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
  };
}

/** Returns the Content-Disposition: inline or attachment, with the file name. */
export function contentDisposition(contentType: string, filename?: string): string {
  const mediaType = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  const disposition = INLINE.has(mediaType) ? "inline" : "attachment";
  return filename === undefined ? disposition : `${disposition}; ${filenameParameters(filename)}`;
}

/** RFC 6266: an ASCII name for old clients, the real one for others; never a path. */
function filenameParameters(filename: string): string {
  const wellFormed = Buffer.from(filename, "utf8").toString("utf8"); // without lone surrogates, which cannot be encoded
  const name = wellFormed.split(/[/\\]/).at(-1)?.trim() || "download";
  const ascii = name.replaceAll(/[^\x20-\x7e]|["%;\\]/g, "_");
  const exact = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `filename="${ascii}"; filename*=UTF-8''${exact}`;
}

import type { IncomingHttpHeaders } from "node:http2";

/** Returns the bytes as plain `Uint8Array`, as which messages return their fields. */
export function joined(chunks: readonly Buffer[]): Uint8Array {
  const { buffer, byteOffset, byteLength } = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns received headers without HTTP/2's pseudo headers. */
export const receivedHeader = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string" && !entry[0].startsWith(":"),
    ),
  );

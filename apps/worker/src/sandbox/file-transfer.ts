import type { Channel } from "./channel.ts";
import { CHUNK_BYTES_MAX } from "./init/protocol.ts";
import { FileTooLarge } from "./sandbox-errors.ts";

/** Reads a whole regular file inside `root`, in chunks. Throws `SandboxRefusal` or `FileTooLarge`. */
export async function readWholeFile(
  channel: Channel,
  { root, path, bytesMax }: { readonly root: string; readonly path: string; readonly bytesMax: number },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let offset = 0; ;) {
    const request = { op: "read", root, path, offset, length: CHUNK_BYTES_MAX } as const;
    const { data, sizeBytes } = await channel.request(request).response;
    if (sizeBytes > bytesMax) throw new FileTooLarge(`${path} has ${sizeBytes} bytes; the limit is ${bytesMax}.`);
    const chunk = Buffer.from(data, "base64");
    chunks.push(chunk);
    offset += chunk.length;
    if (chunk.length === 0 || offset >= sizeBytes) return Buffer.concat(chunks);
    if (offset > bytesMax) throw new FileTooLarge(`${path} grows while it is read.`);
  }
}

/** Writes a whole file inside `root`, in chunks. Returns whether it is new. Throws `SandboxRefusal`. */
export async function writeWholeFile(
  channel: Channel,
  { root, path, content }: { readonly root: string; readonly path: string; readonly content: Uint8Array },
): Promise<{ created: boolean }> {
  let created = false;
  for (let offset = 0; offset === 0 || offset < content.length; offset += CHUNK_BYTES_MAX) {
    const data = Buffer.from(content.subarray(offset, offset + CHUNK_BYTES_MAX)).toString("base64");
    const value = await channel.request({ op: "write", root, path, data, append: offset > 0 }).response;
    if (offset === 0) created = value.created;
  }
  return { created };
}

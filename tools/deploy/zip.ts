import { inflateRawSync } from "node:zlib";

const END_SIGNATURE = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const END_BYTES = 22;
const ENTRY_BYTES = 46;
const LOCAL_HEADER_BYTES = 30;
const STORED = 0;

/**
 * Returns the entries of a zip archive: a function per name that returns the content. Encrypted and ZIP64 archives are
 * not supported.
 */
export function entriesOfZip(zip: Buffer): Map<string, () => Buffer> {
  const end = zip.lastIndexOf(END_SIGNATURE, zip.length - END_BYTES);
  if (end < 0) throw new Error("The archive is not a zip file.");
  const entries = new Map<string, () => Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const method = zip.readUInt16LE(at + 10);
    const size = zip.readUInt32LE(at + 20);
    const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    const header = zip.readUInt32LE(at + 42);
    entries.set(zip.toString("utf8", at + ENTRY_BYTES, at + ENTRY_BYTES + name), () => {
      const start = header + LOCAL_HEADER_BYTES + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
      const content = zip.subarray(start, start + size);
      return method === STORED ? content : inflateRawSync(content);
    });
    at += ENTRY_BYTES + name + extra + comment;
  }
  return entries;
}

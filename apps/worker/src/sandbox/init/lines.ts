import { LINE_BYTES_MAX } from "./protocol.ts";

/** Splits a byte stream into lines. Throws if a line exceeds the limit; the other side must then not be trusted. */
export class LineSplitter {
  #parts: Uint8Array[] = [];
  #bytes = 0;

  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10, start); end >= 0; end = chunk.indexOf(10, start)) {
      this.#add(chunk.subarray(start, end));
      lines.push(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
      this.#bytes = 0;
      start = end + 1;
    }
    this.#add(chunk.subarray(start));
    return lines;
  }

  #add(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > LINE_BYTES_MAX) throw new Error("A line is longer than the protocol allows.");
    if (part.length > 0) this.#parts.push(part);
  }
}

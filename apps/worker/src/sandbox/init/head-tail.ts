/** Stores the first and the last bytes of an output of any length, in bounded memory. */
export class HeadTail {
  readonly #half: number;
  readonly #head: Uint8Array[] = [];
  #tail: Uint8Array[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #omitted = 0;

  constructor(bytesMax: number) {
    this.#half = Math.floor(bytesMax / 2);
  }

  push(chunk: Uint8Array): void {
    const freeBytes = this.#half - this.#headBytes;
    const head = chunk.subarray(0, Math.max(0, freeBytes));
    if (head.length > 0) {
      this.#head.push(head);
      this.#headBytes += head.length;
    }
    const rest = chunk.subarray(head.length);
    if (rest.length > 0) this.#addToTail(rest);
  }

  /** Returns the output as text, with a line in place of the omitted bytes. */
  text(): { text: string; truncated: boolean } {
    if (this.#tailBytes > this.#half) this.#cutTail();
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (this.#omitted === 0) return { text: Buffer.concat([head, tail]).toString("utf8"), truncated: false };
    return {
      text: `${head.toString("utf8")}\n… ${this.#omitted} bytes omitted …\n${tail.toString("utf8")}`,
      truncated: true,
    };
  }

  #addToTail(chunk: Uint8Array): void {
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    if (this.#tailBytes > 4 * this.#half) this.#cutTail();
  }

  #cutTail(): void {
    const tail = Buffer.concat(this.#tail);
    this.#omitted += tail.length - this.#half;
    this.#tail = [tail.subarray(tail.length - this.#half)];
    this.#tailBytes = this.#half;
  }
}

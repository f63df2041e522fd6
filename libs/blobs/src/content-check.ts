import { createHash } from "node:crypto";
import { invalidArgument } from "@millwright/errors";
import type { BlobContent } from "./blob-store.ts";

/** Measures content as it passes, and refuses what is not the expected. */
export class ContentCheck {
  readonly #expected: BlobContent | undefined;
  readonly #hash = createHash("sha256");
  #size = 0;

  constructor(expected: BlobContent | undefined) {
    this.#expected = expected;
  }

  /** Errors: blob_content_mismatch, as soon as it is too long. */
  add(chunk: Uint8Array): void {
    this.#size += chunk.byteLength;
    if (this.#expected && this.#size > this.#expected.size) throw mismatch();
    this.#hash.update(chunk);
  }

  /** Errors: blob_content_mismatch. */
  end(): BlobContent {
    const content = { size: this.#size, sha256: this.#hash.digest("hex") };
    if (this.#expected && (content.size !== this.#expected.size || content.sha256 !== this.#expected.sha256)) throw mismatch();
    return content;
  }
}

const mismatch = () => invalidArgument("blob_content_mismatch", "The content is not what was announced.");

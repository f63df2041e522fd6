import { createHash } from "node:crypto";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { BlobContent, PutOptions } from "./blob-store.ts";

/** Measures content as it streams through and rejects it if it differs from what is expected. */
export class ContentCheck {
  readonly #expected: BlobContent | undefined;
  readonly #sizeMax: number;
  readonly #hash = createHash("sha256");
  #size = 0;

  constructor({ expected, sizeMax = Infinity }: Pick<PutOptions, "expected" | "sizeMax">) {
    this.#expected = expected;
    this.#sizeMax = sizeMax;
  }

  /** Errors: blob_content_mismatch, blob_too_large as soon as the content is too long. */
  add(chunk: Uint8Array): void {
    this.#size += chunk.byteLength;
    if (this.#expected && this.#size > this.#expected.size) throw mismatch();
    if (this.#size > this.#sizeMax)
      throw new DomainError({
        kind: "too_large",
        reason: "blob_too_large",
        message: `The content has more than ${this.#sizeMax} bytes.`,
      });
    this.#hash.update(chunk);
  }

  /** Errors: blob_content_mismatch. */
  end(): BlobContent {
    const content = { size: this.#size, sha256: this.#hash.digest("hex") };
    if (this.#expected && (content.size !== this.#expected.size || content.sha256 !== this.#expected.sha256))
      throw mismatch();
    return content;
  }
}

const mismatch = () =>
  invalidArgument(
    "blob_content_mismatch",
    "The uploaded content does not match its announced size or SHA-256. Upload it again.",
  );

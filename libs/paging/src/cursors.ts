import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "@millwright/json";
import { invalidArgument, type DomainError } from "@millwright/errors";

const MAC_BYTES = 16;

/**
 * Creates and verifies page tokens: URL-safe, authenticated (HMAC-SHA-256, 128 bits), and bound to their list, sort and
 * filters. A cursor is not secret: it contains the sort key of the last row, which its holder has seen.
 */
export class Cursors {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  /**
   * `key`: at least 32 bytes, the same on every replica. Cursors of the `accepted` keys are opened, too, such as those
   * of the previous key during a rotation.
   */
  constructor(key: Uint8Array, ...accepted: readonly Uint8Array[]) {
    this.#keys = [key, ...accepted];
    if (this.#keys.some(({ length }) => length < 32)) throw new Error("the cursor key must have at least 32 bytes");
  }

  /**
   * @param list names the list, such as "runs"
   * @param bind the resolved sort and filters (JSON values; the order of members and absent members do not matter);
   *   never the page size
   * @param position JSON values from which the next page continues
   */
  seal(list: string, bind: Readonly<Record<string, unknown>>, position: readonly unknown[]): string {
    const body = Buffer.from(JSON.stringify(position));
    return Buffer.concat([mac(this.#keys[0], list, bind, body), body]).toString("base64url");
  }

  /**
   * Returns the position of a cursor. Throws `invalid_cursor` unless this list, with this sort and these filters,
   * issued it.
   */
  open(list: string, bind: Readonly<Record<string, unknown>>, cursor: string): unknown[] {
    const bytes = Buffer.from(cursor, "base64url");
    if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== cursor) throw invalidCursor();
    const body = bytes.subarray(MAC_BYTES);
    const given = bytes.subarray(0, MAC_BYTES);
    if (!this.#keys.some((key) => timingSafeEqual(given, mac(key, list, bind, body)))) throw invalidCursor();
    return JSON.parse(body.toString("utf8")) as unknown[];
  }
}

function mac(key: Uint8Array, list: string, bind: Readonly<Record<string, unknown>>, body: Uint8Array): Buffer {
  const scope = createHash("sha256")
    .update(canonicalJson([list, bind]))
    .digest();
  return createHmac("sha256", key).update(scope).update(body).digest().subarray(0, MAC_BYTES);
}

const invalidCursor = (): DomainError =>
  invalidArgument(
    "invalid_cursor",
    "The cursor does not belong to this list, sort order and filters. Repeat the request without a cursor.",
  );

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** The platform's limit of one event's payload, as UTF-8 JSON. */
export const PAYLOAD_BYTES_MAX = 64 * 1024;

const TOP_LEVEL_TEXT_MAX = 1_024;

export const jsonBytes = (value: JsonValue): number => Buffer.byteLength(JSON.stringify(value));

/**
 * Returns the payload, or a truncated one that fits, marked `truncated: true`. Long texts retain their beginning and
 * end. If the result is still too large (thousands of short texts), only short top-level values remain.
 */
export function fitPayload(payload: JsonObject, bytesMax: number = PAYLOAD_BYTES_MAX): JsonObject {
  if (jsonBytes(payload) <= bytesMax) return payload;
  for (let charsMax = bytesMax / 2; charsMax >= TOP_LEVEL_TEXT_MAX; charsMax /= 2) {
    const cut = { ...mapStrings(payload, (text) => cutText(text, charsMax)), truncated: true };
    if (jsonBytes(cut) <= bytesMax) return cut;
  }
  const shortened: JsonObject = { truncated: true };
  for (const [name, value] of Object.entries(payload)) {
    const isShort = typeof value === "object" && value !== null ? false : jsonBytes(value) <= TOP_LEVEL_TEXT_MAX;
    if (isShort && jsonBytes(shortened) + jsonBytes(value) + name.length * 6 < bytesMax - 16) shortened[name] = value;
  }
  return shortened;
}

/** Returns a copy with every string replaced, including the names of object members. */
export function mapStrings<T extends JsonValue>(value: T, change: (text: string) => string): T {
  const walk = (part: JsonValue): JsonValue => {
    if (typeof part === "string") return change(part);
    if (Array.isArray(part)) return part.map(walk);
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([name, member]) => [change(name), walk(member)]));
  };
  return walk(value) as T;
}

/** Returns the beginning and end of a text longer than `charsMax`, without splitting surrogate pairs. */
function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const half = Math.floor(charsMax / 2);
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, "");
  const tail = text.slice(-half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}\n… ${text.length - head.length - tail.length} characters omitted …\n${tail}`;
}

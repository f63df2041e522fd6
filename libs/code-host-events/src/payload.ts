import type { CodeHostDelivery } from "./event.ts";

const FORM = "application/x-www-form-urlencoded";

/** Returns the JSON of a body: the body itself, or the `payload` field of a form, GitHub's default encoding. */
export function jsonBytes({ headers, body }: Pick<CodeHostDelivery, "headers" | "body">): Uint8Array {
  if (mediaType(headers["content-type"]) !== FORM) return body;
  return Buffer.from(new URLSearchParams(Buffer.from(body).toString("utf8")).get("payload") ?? "", "utf8");
}

/** Returns the parsed payload; undefined if it is not JSON, which the ingress never accepts. */
export function payloadOf(delivery: Pick<CodeHostDelivery, "headers" | "body">): unknown {
  try {
    return JSON.parse(Buffer.from(jsonBytes(delivery)).toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}

const mediaType = (header = ""): string => header.split(";")[0]!.trim().toLowerCase();

import type { CodeHostDelivery } from "./event.ts";

const FORM = "application/x-www-form-urlencoded";

/** The JSON of a body: itself, or the field `payload` of a form, which is how GitHub sends unless it is told otherwise. */
export function jsonBytes({ headers, body }: Pick<CodeHostDelivery, "headers" | "body">): Uint8Array {
  if (mediaType(headers["content-type"]) !== FORM) return body;
  return Buffer.from(new URLSearchParams(Buffer.from(body).toString("utf8")).get("payload") ?? "", "utf8");
}

/** What a delivery says; undefined when it is not JSON, which no accepted one is. */
export function payloadOf(delivery: Pick<CodeHostDelivery, "headers" | "body">): unknown {
  try {
    return JSON.parse(Buffer.from(jsonBytes(delivery)).toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}

const mediaType = (header = ""): string => header.split(";")[0]!.trim().toLowerCase();

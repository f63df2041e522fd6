import { evaluateFilter, parseFilter, parsePayload, type Payload } from "@millwright/payload-filter";
import type { CheckTrigger } from "./decision.ts";

/** A delivered body for filters, or why it cannot be evaluated. */
export type Body = Payload | "not stored" | "unreadable";

/** Parses a stored body once for all filters. Stored bytes are JSON; deep nesting may make them unreadable. */
export function bodyOf(bytes: Uint8Array | undefined): Body {
  if (!bytes) return "not stored";
  try {
    return parsePayload(bytes) ?? "unreadable";
  } catch {
    return "unreadable";
  }
}

/** Evaluates triggers `webhook`/`received` that select the webhook; what cannot be evaluated does not match. */
export const checkDelivery =
  (webhookUid: string, body: Body): CheckTrigger =>
  ({ provider, event, filter, payload }) => {
    if (
      provider !== "webhook" ||
      event !== "received" ||
      !filter["webhook_ids"]?.in?.some((uid) => uid.toLowerCase() === webhookUid)
    )
      return undefined;
    if (body === "not stored") return { passed: false, detail: "The payload is no longer stored.", failed: [] };
    const { filter: parsed } = parseFilter(payload);
    if (!parsed) return { passed: false, detail: "The payload filter cannot be read.", failed: [] };
    if (parsed.fields.length === 0)
      return { passed: true, detail: "Without a payload filter every delivery matches.", failed: [] };
    if (body === "unreadable")
      return {
        passed: false,
        detail: "The payload is nested too deeply to be evaluated, so it does not match.",
        failed: [],
      };
    const { matches, failedPaths } = evaluateFilter(parsed, body);
    if (matches) return { passed: true, detail: "Every field of the payload filter matches.", failed: [] };
    return {
      passed: false,
      detail: `The payload does not match: ${failedPaths.map((path) => path || "the whole body").join(", ")}.`,
      failed: failedPaths,
    };
  };

import { checkPayload, parseStoredFilter, readPayload, type ReadPayload } from "@millwright/payload-filter";
import type { CheckTrigger } from "./decision.ts";

/** A delivered body for filters, or why it cannot be evaluated. */
export type Body = ReadPayload | "not stored";

/** Parses a stored body once for all filters. Stored bytes are JSON; deep nesting may make them unreadable. */
export const bodyOf = (bytes: Uint8Array | undefined): Body =>
  bytes ? (readPayload(bytes) ?? "unreadable") : "not stored";

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
    const { filter: parsed } = parseStoredFilter(payload);
    if (!parsed) return { passed: false, detail: "The payload filter cannot be read.", failed: [] };
    const { passed, detail, failedPaths } = checkPayload(parsed, body);
    return { passed, detail, failed: failedPaths };
  };

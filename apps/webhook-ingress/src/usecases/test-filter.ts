import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import {
  evaluateFilter,
  parseExactly,
  parseFilter,
  parsePayload,
  type Payload,
  type PayloadFilter,
} from "@millwright/payload-filter";
import type { Webhook } from "../domain/webhook.ts";
import { getDelivery, type ReadDeliveriesDeps } from "./read-deliveries.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type TestFilterDeps = ScopeDeps &
  Pick<ReadDeliveriesDeps, "deliveries"> & { webhooks: { list(factoryUid: string): Promise<Webhook[]> } };

/** `payloadFilter`: JSON text, empty for none. Exactly one of a stored delivery and a body. */
export type AskedTest = {
  factoryUid: string;
  webhookUids: readonly string[];
  payloadFilter: string;
  deliveryUid: string;
  payload: Uint8Array | undefined;
};
export type Check = { readonly passed: boolean; readonly detail: string };
export type TestedFilter = {
  readonly wouldTrigger: boolean;
  readonly webhook: Check;
  readonly payload: Check;
  readonly failedPaths: readonly string[];
};

/**
 * Whether a trigger of these webhooks and this filter would take a delivery; it does not look at what is enabled, and starts
 * and writes nothing (spec §6.2, webhooks §9).
 *
 * Errors: factory_not_found · not_authorized · invalid_filter (each fault as a detail) · delivery_not_found · payload_not_stored · invalid_payload.
 */
export async function testFilter(deps: TestFilterDeps, caller: Caller, asked: AskedTest): Promise<TestedFilter> {
  const factory = await findFactory(deps, caller, asked.factoryUid);
  const filter = readFilter(asked.payloadFilter);
  const owned = new Map((await deps.webhooks.list(factory.uid)).map((one) => [one.uid as string, one]));
  const chosen = asked.webhookUids.map((uid) => uid.toLowerCase());
  const { webhookUid, bytes } = await delivered(deps, caller, asked);
  const absent = chosen.find((uid) => !owned.has(uid));
  const webhook: Check =
    absent !== undefined
      ? { passed: false, detail: `The factory has no webhook ${absent}.` }
      : chosen.length === 0
        ? { passed: false, detail: "The trigger selects no webhook." }
        : webhookUid === undefined
          ? {
              passed: true,
              detail: "A body was sent instead of a stored delivery: it counts as one of the selected webhooks'.",
            }
          : chosen.includes(webhookUid)
            ? { passed: true, detail: "The delivery came to a selected webhook." }
            : {
                passed: false,
                detail: `The delivery came to the webhook ${owned.get(webhookUid)?.name ?? webhookUid}, which is not selected.`,
              };
  const { check: payload, failedPaths } = checkPayload(filter, bytes);
  return { wouldTrigger: webhook.passed && payload.passed, webhook, payload, failedPaths };
}

function readFilter(text: string): PayloadFilter {
  const { filter, faults } = parseFilter(text === "" ? {} : parseExactly(text));
  if (filter) return filter;
  throw new DomainError({
    kind: "invalid_argument",
    reason: "invalid_filter",
    message: faults.map(({ path, message }) => `${path || "payload_filter"}: ${message}`).join(" "),
    details: faults,
  });
}

async function delivered(
  deps: TestFilterDeps,
  caller: Caller,
  { factoryUid, deliveryUid, payload }: AskedTest,
): Promise<{ webhookUid?: string; bytes: Uint8Array }> {
  if ((deliveryUid === "") === (payload === undefined))
    throw invalidArgument("invalid_payload", "Name a stored delivery, or send a payload; one of them.");
  if (payload) return { bytes: payload };
  const found = await getDelivery(deps, caller, { factoryUid, webhookUid: "", deliveryUid });
  if (!found.payload) throw invalidArgument("payload_not_stored", "Only accepted deliveries keep their payload.");
  return { webhookUid: found.delivery.webhookUid, bytes: found.payload };
}

function checkPayload(filter: PayloadFilter, bytes: Uint8Array): { check: Check; failedPaths: readonly string[] } {
  const payload = readable(bytes);
  if (payload === undefined) throw invalidArgument("invalid_payload", "The payload is not JSON.");
  if (payload === "unreadable")
    return {
      check: { passed: false, detail: "The payload is nested too deeply to be evaluated, so it does not match." },
      failedPaths: [],
    };
  const { matches, failedPaths } = evaluateFilter(filter, payload);
  if (matches)
    return {
      check: {
        passed: true,
        detail:
          filter.fields.length === 0
            ? "Without a filter every delivery matches."
            : "Every field of the filter matches.",
      },
      failedPaths,
    };
  return {
    check: {
      passed: false,
      detail: `Does not match: ${failedPaths.map((path) => path || "the body itself").join(", ")}.`,
    },
    failedPaths,
  };
}

function readable(bytes: Uint8Array): Payload | "unreadable" | undefined {
  try {
    return parsePayload(bytes);
  } catch {
    return "unreadable";
  }
}

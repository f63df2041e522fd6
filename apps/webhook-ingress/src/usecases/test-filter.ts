import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import {
  checkPayload,
  parseExactly,
  parseFilter,
  readPayload,
  type PayloadCheck,
  type PayloadFilter,
} from "@millwright/payload-filter";
import type { WebhookStore } from "../store/webhook-store.ts";
import { getDelivery, type ReadDeliveriesDeps } from "./read-deliveries.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type TestFilterDeps = ScopeDeps &
  Pick<ReadDeliveriesDeps, "deliveries"> & { webhooks: Pick<WebhookStore, "list"> };

/** `payloadFilter`: JSON text, empty for none. Exactly one of `deliveryUid` and `payload` is set. */
export type FilterTestRequest = {
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
 * Evaluates whether a trigger of these webhooks and this filter would accept a delivery. It ignores whether they are
 * enabled, and starts and writes nothing.
 *
 * Errors: factory_not_found · not_authorized · invalid_filter (each problem as a detail) · delivery_not_found ·
 * payload_not_stored · invalid_payload.
 */
export async function testFilter(
  deps: TestFilterDeps,
  caller: Caller,
  input: FilterTestRequest,
): Promise<TestedFilter> {
  const factory = await findFactory(deps, caller, input.factoryUid);
  const filter = readFilter(input.payloadFilter);
  const owned = new Map((await deps.webhooks.list(factory.uid)).map((webhook) => [webhook.uid as string, webhook]));
  const selected = input.webhookUids.map((uid) => uid.toLowerCase());
  const { webhookUid, bytes } = await readDelivered(deps, caller, input);
  const absent = selected.find((uid) => !owned.has(uid));
  const webhook: Check =
    absent !== undefined
      ? { passed: false, detail: `The factory has no webhook ${absent}.` }
      : selected.length === 0
        ? { passed: false, detail: "The trigger selects no webhook." }
        : webhookUid === undefined
          ? {
              passed: true,
              detail: "The payload was sent with the request and counts as a delivery to a selected webhook.",
            }
          : selected.includes(webhookUid)
            ? { passed: true, detail: "The delivery came to a selected webhook." }
            : {
                passed: false,
                detail: `The delivery came to the webhook ${owned.get(webhookUid)?.name ?? webhookUid}, which is not selected.`,
              };
  const { failedPaths, ...payload } = checkDelivered(filter, bytes);
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

async function readDelivered(
  deps: TestFilterDeps,
  caller: Caller,
  { factoryUid, deliveryUid, payload }: FilterTestRequest,
): Promise<{ webhookUid?: string; bytes: Uint8Array }> {
  if ((deliveryUid === "") === (payload === undefined))
    throw invalidArgument("invalid_payload", "Send either delivery_uid or payload, not both.");
  if (payload) return { bytes: payload };
  const found = await getDelivery(deps, caller, { factoryUid, webhookUid: "", deliveryUid });
  if (!found.payload)
    throw invalidArgument("payload_not_stored", "The delivery was not accepted, so its payload is not stored.");
  return { webhookUid: found.delivery.webhookUid, bytes: found.payload };
}

function checkDelivered(filter: PayloadFilter, bytes: Uint8Array): PayloadCheck {
  const payload = readPayload(bytes);
  if (payload === undefined) throw invalidArgument("invalid_payload", "payload must be valid JSON.");
  return checkPayload(filter, payload);
}

import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, NIL_UUID } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { CodeHostDelivery } from "../domain/code-host-webhook.ts";
import type { StoredCodeHostDelivery, CodeHostDeliveryStore } from "../store/code-host-delivery-store.ts";
import { findCodeHostWebhook, type CodeHostRef, type CodeHostScopeDeps } from "./code-host-webhooks.ts";

export type ReadCodeHostDeliveriesDeps = CodeHostScopeDeps & {
  codeHostDeliveries: Pick<CodeHostDeliveryStore, "list" | "find" | "findAll" | "walk">;
  cursors: Cursors;
};

export type DeliveryBatch = {
  readonly deliveries: readonly StoredCodeHostDelivery[];
  /** Stored, but left out for their size. */
  readonly omittedUids: readonly string[];
};

/**
 * Lists a connection's deliveries, newest first. Errors: code_host_not_found · not_authorized ·
 * code_host_webhook_not_found · invalid_cursor.
 */
export async function listCodeHostDeliveries(
  deps: ReadCodeHostDeliveriesDeps,
  caller: Caller,
  ref: CodeHostRef,
  page: { size: number; token: string },
): Promise<{ deliveries: CodeHostDelivery[]; nextPageToken: string }> {
  const { codeHostUid } = await findCodeHostWebhook(deps, caller, ref);
  const bind = { code_host: codeHostUid };
  const [at, uid] = (page.token === "" ? [] : deps.cursors.open("code host deliveries", bind, page.token)) as string[];
  const limit = clampPageSize(page.size, { default: 50, max: 100 });
  const rows = await deps.codeHostDeliveries.list(
    codeHostUid,
    at === undefined ? undefined : { at: new Date(at), uid: uid ?? "" },
    limit + 1,
  );
  const deliveries = rows.slice(0, limit);
  const last = deliveries.at(-1);
  return {
    deliveries,
    nextPageToken:
      rows.length > limit && last
        ? deps.cursors.seal("code host deliveries", bind, [last.receivedAt.toISOString(), last.uid])
        : "",
  };
}

/**
 * Returns a delivery, with its bytes and headers if it was accepted. Services may read any.
 *
 * Errors: delivery_not_found (also of another connection) · code_host_not_found · not_authorized ·
 * code_host_webhook_not_found.
 */
export async function getCodeHostDelivery(
  deps: ReadCodeHostDeliveriesDeps,
  caller: Caller,
  ref: CodeHostRef & { deliveryUid: string },
): Promise<StoredCodeHostDelivery> {
  const isService = caller.principal.type === "service";
  const codeHostUid = isService ? undefined : (await findCodeHostWebhook(deps, caller, ref)).codeHostUid;
  const found = isUuid(ref.deliveryUid) ? await deps.codeHostDeliveries.find(ref.deliveryUid) : undefined;
  if (!found || (codeHostUid !== undefined && found.delivery.codeHostUid !== codeHostUid)) throw notFound("delivery");
  return found;
}

const BATCH_MAX = 500;
const BATCH_BODY_BYTES_MAX = 8 * 1024 * 1024;

/** Returns accepted deliveries of any connection. Errors: invalid_delivery_uids. */
export async function batchGetCodeHostDeliveries(
  { codeHostDeliveries }: Pick<ReadCodeHostDeliveriesDeps, "codeHostDeliveries">,
  uids: readonly string[],
): Promise<DeliveryBatch> {
  if (uids.length > BATCH_MAX || !uids.every(isUuid))
    throw invalidArgument(
      "invalid_delivery_uids",
      `delivery_uids must be at most ${BATCH_MAX} UUIDs (got ${uids.length}).`,
    );
  return codeHostDeliveries.findAll(uids, BATCH_BODY_BYTES_MAX);
}

const WALK = "all code host deliveries";

/**
 * Returns a page of all accepted deliveries that are still stored, oldest first. Errors: invalid_cursor
 * (invalid_argument).
 */
export async function walkCodeHostDeliveries(
  { codeHostDeliveries, cursors }: Pick<ReadCodeHostDeliveriesDeps, "codeHostDeliveries" | "cursors">,
  page: { size: number; token: string },
): Promise<{ deliveries: CodeHostDelivery[]; nextPageToken: string }> {
  const limit = clampPageSize(page.size, { default: 100, max: 500 });
  const [after] = page.token === "" ? [NIL_UUID] : (cursors.open(WALK, {}, page.token) as [string]);
  const rows = await codeHostDeliveries.walk(after, limit + 1);
  const deliveries = rows.slice(0, limit);
  return { deliveries, nextPageToken: rows.length > limit ? cursors.seal(WALK, {}, [deliveries.at(-1)!.uid]) : "" };
}

import type { JsonObject } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";
import type { CodeHostWebhook } from "../domain/code-host-webhook.ts";
import { originOf } from "./webhook-events.ts";

/** `millwright.code_host_webhook.created|updated|deleted.v1`: the state after the fact, never a secret. `more` says what changed. */
export const codeHostWebhookEvent = (
  happened: "created" | "updated" | "deleted",
  webhook: CodeHostWebhook,
  caller: Caller,
  more: JsonObject = {},
): NewEvent => ({
  type: `millwright.code_host_webhook.${happened}.v1`,
  entity: "code_host_webhook",
  entityUid: webhook.codeHostUid,
  entityVersion: webhook.version,
  teamUid: webhook.teamUid,
  payload: { code_host_uid: webhook.codeHostUid, provider: webhook.provider, enabled: webhook.enabled, ...more },
  ...originOf(caller),
});

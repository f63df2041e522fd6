import type { JsonObject } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";
import type { CodeHostWebhook } from "../domain/code-host-webhook.ts";
import { originOf } from "./webhook-events.ts";

/** Builds `millwright.code_host_webhook.created|updated|deleted.v1`: the state after the change, without the secret. */
export const codeHostWebhookEvent = (
  verb: "created" | "updated" | "deleted",
  webhook: CodeHostWebhook,
  caller: Caller,
  members: JsonObject = {},
): NewEvent => ({
  type: `millwright.code_host_webhook.${verb}.v1`,
  entity: "code_host_webhook",
  entityUid: webhook.codeHostUid,
  entityVersion: webhook.version,
  teamUid: webhook.teamUid,
  payload: { code_host_uid: webhook.codeHostUid, provider: webhook.provider, enabled: webhook.enabled, ...members },
  ...originOf(caller),
});

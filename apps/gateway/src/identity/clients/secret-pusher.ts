import type { Client } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import type { webhooks } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import type { PushSecret } from "../usecases/manage-secrets.ts";

/** Less than the time limit of the transaction that changes a secret. */
const PUSH_TIMEOUT_MS = 15_000;

/** Sends the new value of a managed secret to the webhook ingress. */
export const secretPusher =
  (client: Pick<Client<typeof webhooks.WebhookService>, "updateManagedSecret">): PushSecret =>
  async ({ teamUid, name, revision, value }) => {
    await client.updateManagedSecret(
      { teamUid, name, revision, value },
      call(serviceCaller("gateway", newUid()), { timeoutMs: PUSH_TIMEOUT_MS }),
    );
  };

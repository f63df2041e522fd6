import { serviceCaller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import type { PushSecret } from "../usecases/manage-secrets.ts";
import type { Upstreams } from "./upstreams.ts";

/** Well within the time that the transaction of a change may take. */
const PUSH_TIMEOUT_MS = 15_000;

/** Tells the webhook ingress of a managed secret's new value. */
export const secretPusher =
  (webhooks: Upstreams["webhooks"]): PushSecret =>
  async ({ teamUid, name, revision, value }) => {
    await webhooks.pushManagedSecret(
      { teamUid, name, revision, ...(value !== undefined && { value }) },
      call(serviceCaller("gateway", newUid()), { timeoutMs: PUSH_TIMEOUT_MS }),
    );
  };

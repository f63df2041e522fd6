import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { orchestrator, webhooks } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, optionalTimestamp, type CallerSigner } from "@millwright/rpc";
import type { CodeHostResponse, CodeHostRead } from "../usecases/read-history.ts";

/** Code hosts, read by the orchestrator, which has their credentials. */
export function codeHostClient(
  { orchestrator: catalog, webhookIngress }: { readonly orchestrator: Transport; readonly webhookIngress: Transport },
  signer: CallerSigner,
) {
  const client = clientFor(orchestrator.CatalogService, catalog, { signer });
  const hooks = clientFor(webhooks.CodeHostWebhookService, webhookIngress, { signer });
  const options = () => call(serviceCaller(signer.service, newUid()));
  return {
    /**
     * Reads one page. Errors: code_host_not_connected, code_host_unauthorized, code_host_forbidden,
     * code_host_unavailable.
     */
    async read({ changedSince, ...read }: CodeHostRead): Promise<CodeHostResponse> {
      const response = await client.readCodeHost({ ...read, changedSince: optionalTimestamp(changedSince) }, options());
      const { outcome, body, answeredAt } = response;
      return {
        ...response,
        outcome: outcome as CodeHostResponse["outcome"],
        body: body.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(body)),
        answeredAt: answeredAt ? timestampDate(answeredAt) : new Date(),
      };
    },

    /** Returns the account under which the platform acts; "" = not known. */
    async botLogin(teamUid: string, codeHostUid: string): Promise<string> {
      const found = await hooks.getCodeHostWebhook({ teamUid, codeHostUid }, options()).catch((error: unknown) => {
        if (isDomainError(error) && error.kind === "not_found") return undefined;
        throw error;
      });
      return found?.webhook?.botLogin ?? "";
    },
  };
}

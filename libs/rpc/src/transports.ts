import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Handover, IN_PERSON } from "./in-person.ts";
import { serverOptions } from "./server.ts";
import type { Routes, ServerOptions } from "./server-options.ts";

/** A transport that ends in this process. */
export type LocalTransport = Transport & { readonly [IN_PERSON]: true };

/**
 * A transport to services of the same process: same checks, same translation, same encoding as over the network. Only the
 * caller is handed over as it is once its signer has proved itself.
 */
export function inProcess(routes: Routes, options: ServerOptions): LocalTransport {
  const handover = new Handover();
  const router = createRouterTransport(routes, { router: serverOptions({ ...options, verifier: handover.verifier(options.verifier) }) });
  return {
    [IN_PERSON]: true,
    unary(method, signal, timeoutMs, given, input, values) {
      const header = new Headers(given);
      return handover.during(header, values, () => router.unary(method, signal, timeoutMs, header, input, values));
    },
    stream(method, signal, timeoutMs, given, input, values) {
      const header = new Headers(given);
      return handover.during(header, values, () => router.stream(method, signal, timeoutMs, header, input, values));
    },
  };
}

/** A transport to `mountHttp1`; `baseUrl` contains its prefix, such as "https://host/rpc". */
export const http1Transport = (baseUrl: string): Transport => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true });

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { InProcessCallers, TRUSTED_IN_PROCESS, LOCAL } from "./in-process-callers.ts";
import { serverOptions } from "./server.ts";
import type { Routes, ServerOptions } from "./server-options.ts";
import { UnaryCall } from "./unary-call.ts";
import { UnaryImplementations } from "./unary-implementations.ts";

/** A transport that ends in this process. */
export type LocalTransport = Transport & { readonly [TRUSTED_IN_PROCESS]: true };

/**
 * Returns a transport to services of the same process: with the same checks, translation and log lines as over the
 * network. Messages of unary calls are passed by reference, and so is the caller once its signer is trusted: neither
 * side may change a message that it has sent or received. Streams are encoded.
 */
export function inProcess(routes: Routes, options: ServerOptions): LocalTransport {
  const callers = new InProcessCallers();
  const implementations = new UnaryImplementations(options);
  const router = createRouterTransport(implementations.recording(routes), { router: serverOptions(options) });
  return {
    [TRUSTED_IN_PROCESS]: true,
    async unary(method, signal, timeoutMs, header, input, values) {
      if (!implementations.has(method))
        return router.unary(method, signal, timeoutMs, await callers.signed(header, values), input, values);
      const caller = callers.caller(values);
      const call = new UnaryCall({ method, timeoutMs, header: caller ? header : await callers.signed(header, values) });
      call.values.set(LOCAL, { caller });
      const response = await cancelledBy(signal, call, () =>
        implementations.call(call, method, () => {
          if (!caller) callers.trust(values);
          return create(method.input, input);
        }),
      );
      return response as UnaryResponse<typeof method.input, typeof method.output>;
    },
    async stream(method, signal, timeoutMs, header, input, values) {
      return router.stream(method, signal, timeoutMs, await callers.signed(header, values), input, values);
    },
  };
}

async function cancelledBy<T>(signal: AbortSignal | undefined, call: UnaryCall, f: () => Promise<T>): Promise<T> {
  if (!signal) return f();
  const cancel = (): void => call.cancel(ConnectError.from(signal.reason, Code.Canceled));
  if (signal.aborted) throw ConnectError.from(signal.reason, Code.Canceled);
  signal.addEventListener("abort", cancel);
  try {
    return await f();
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** Returns a transport to `mountHttp1`; `baseUrl` contains its prefix, such as "https://host/rpc". */
export const http1Transport = (baseUrl: string): Transport =>
  createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true });

import { create, type DescMethod } from "@bufbuild/protobuf";
import {
  createRouterTransport,
  type ConnectRouter,
  type HandlerContext,
  type Interceptor,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { InProcessCallers, TRUSTED_IN_PROCESS, LOCAL } from "./in-process-callers.ts";
import { LocalCall } from "./local-call.ts";
import { serverOptions } from "./server.ts";
import type { Routes, ServerOptions } from "./server-options.ts";

/** A transport that ends in this process. */
export type LocalTransport = Transport & { readonly [TRUSTED_IN_PROCESS]: true };

/**
 * Returns a transport to services of the same process: with the same checks, translation and log lines as over the
 * network. Messages of unary calls are passed by reference, and so is the caller once its signer is trusted: neither
 * side may change a message that it has sent or received. Streams are encoded.
 */
export function inProcess(routes: Routes, options: ServerOptions): LocalTransport {
  const callers = new InProcessCallers();
  const server = serverOptions(options);
  const implementations = new Map<DescMethod, Implementation>();
  const router = createRouterTransport((real) => routes(recording(implementations, real)), { router: server });
  const { requestGate, interceptors = [] } = server;
  return {
    [TRUSTED_IN_PROCESS]: true,
    async unary(method, signal, timeoutMs, header, input, values) {
      const implementation = implementations.get(method);
      if (!implementation)
        return router.unary(method, signal, timeoutMs, await callers.signed(header, values), input, values);
      const caller = callers.caller(values);
      const call = new LocalCall({
        method,
        signal,
        timeoutMs,
        header: caller ? header : await callers.signed(header, values),
      });
      call.values.set(LOCAL, { caller });
      const context = call.context();
      const { message } = await call.within(async () => {
        await requestGate?.(context);
        if (!caller) callers.trust(values);
        const request = call.request(create(method.input, input));
        return intercepted(interceptors, request, invoke(implementation, request, context));
      });
      return {
        stream: false,
        method,
        service: method.parent,
        message,
        get header() {
          return call.responseHeader;
        },
        get trailer() {
          return call.responseTrailer;
        },
      } as UnaryResponse<typeof method.input, typeof method.output>;
    },
    async stream(method, signal, timeoutMs, header, input, values) {
      return router.stream(method, signal, timeoutMs, await callers.signed(header, values), input, values);
    },
  };
}

type Implementation = (request: unknown, context: HandlerContext) => unknown;

/** Wraps a router to record the implementations of unary methods. */
function recording(implementations: Map<DescMethod, Implementation>, router: ConnectRouter): ConnectRouter {
  const service: ConnectRouter["service"] = (desc, implementation, options) => {
    const functions = implementation as Readonly<Record<string, Implementation | undefined>>;
    for (const method of desc.methods) {
      if (method.methodKind === "unary" && functions[method.localName])
        implementations.set(method, (request, context) => functions[method.localName]!(request, context));
    }
    router.service(desc, implementation, options);
    return recorded;
  };
  const recorded: ConnectRouter = {
    handlers: router.handlers,
    service,
    rpc: (...given) => (router.rpc(...given), recorded),
  };
  return recorded;
}

type Next = ReturnType<Interceptor>;

const intercepted = (interceptors: readonly Interceptor[], request: UnaryRequest, last: Next): Promise<UnaryResponse> =>
  interceptors.reduceRight((next, interceptor) => interceptor(next), last)(request) as Promise<UnaryResponse>;

/** Calls the implementation with the request that the interceptors return. */
const invoke =
  (implementation: Implementation, own: UnaryRequest, context: HandlerContext): Next =>
  async (request) => {
    const seen =
      request === own
        ? context
        : { ...context, requestHeader: request.header, values: request.contextValues, signal: request.signal };
    const output = (await implementation(request.message, seen)) as Record<string, unknown>;
    const { method } = own;
    return {
      stream: false,
      method,
      service: method.parent,
      message: create(method.output, output),
      get header() {
        return context.responseHeader;
      },
      get trailer() {
        return context.responseTrailer;
      },
    };
  };

/** Returns a transport to `mountHttp1`; `baseUrl` contains its prefix, such as "https://host/rpc". */
export const http1Transport = (baseUrl: string): Transport =>
  createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true });

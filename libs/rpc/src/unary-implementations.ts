import { create, type DescMethod, type DescMethodUnary, type MessageShape, type DescMessage } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, Interceptor, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { serverOptions } from "./server.ts";
import type { Routes, ServerOptions } from "./server-options.ts";
import type { UnaryCall } from "./unary-call.ts";

type Implementation = (request: unknown, context: HandlerContext) => unknown;
type Next = ReturnType<Interceptor>;

/** The implementations of unary methods, called with the checks, logs and translation of every server. */
export class UnaryImplementations {
  readonly #byMethod = new Map<DescMethod, Implementation>();
  readonly #server: ReturnType<typeof serverOptions>;

  constructor(options: ServerOptions) {
    this.#server = serverOptions(options);
  }

  get methods(): Iterable<DescMethod> {
    return this.#byMethod.keys();
  }

  has(method: DescMethod): boolean {
    return this.#byMethod.has(method);
  }

  /** Wraps routes to record the implementations that they register. */
  recording(routes: Routes): Routes {
    return (router) => routes(this.#recorder(router));
  }

  /**
   * Authenticates the call, and then receives its message and calls the implementation. Rejects with a ConnectError if
   * the call fails, or ends before the implementation does.
   */
  call<I extends DescMessage>(
    call: UnaryCall,
    method: DescMethodUnary<I>,
    receive: () => MessageShape<I> | Promise<MessageShape<I>>,
  ): Promise<UnaryResponse> {
    const implementation = this.#byMethod.get(method)!;
    const { requestGate, interceptors = [] } = this.#server;
    const context = call.context();
    return call.within(async () => {
      await requestGate?.(context);
      const request = call.request(await receive());
      return intercepted(interceptors, request, invoke(implementation, request, context));
    });
  }

  #recorder(router: ConnectRouter): ConnectRouter {
    const service: ConnectRouter["service"] = (desc, implementation, options) => {
      const functions = implementation as Readonly<Record<string, Implementation | undefined>>;
      for (const method of desc.methods) {
        if (method.methodKind === "unary" && functions[method.localName])
          this.#byMethod.set(method, (request, context) => functions[method.localName]!(request, context));
      }
      router.service(desc, implementation, options);
      return recorder;
    };
    const recorder: ConnectRouter = {
      handlers: router.handlers,
      service,
      rpc: (...given) => (router.rpc(...given), recorder),
    };
    return recorder;
  }
}

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

import type { DescMethodUnary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  type ContextValues,
  type HandlerContext,
  type UnaryRequest,
} from "@connectrpc/connect";

type HeadersInit = ConstructorParameters<typeof Headers>[0];

export type LocalCallInit = {
  readonly method: DescMethodUnary;
  readonly header: HeadersInit;
  /** Called when the client cancels. */
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
};

/**
 * One unary call that stays in this process: its context for the implementation, and its end. Headers and the signal
 * are created on first use: few implementations need them, and they cost more than all the rest.
 */
export class LocalCall {
  readonly values: ContextValues = createContextValues();
  readonly #init: LocalCallInit;
  readonly #deadlineMs: number | undefined;
  #requestHeader: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #aborting: AbortController | undefined;
  #end: ConnectError | undefined;

  constructor(init: LocalCallInit) {
    this.#init = init;
    this.#deadlineMs = init.timeoutMs === undefined ? undefined : performance.now() + init.timeoutMs;
  }

  get requestHeader(): Headers {
    return (this.#requestHeader ??= new Headers(this.#init.header));
  }

  get responseHeader(): Headers {
    return (this.#responseHeader ??= new Headers());
  }

  get responseTrailer(): Headers {
    return (this.#responseTrailer ??= new Headers());
  }

  /** Aborted when the client cancels, at the deadline, and when the call has ended. */
  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#end) this.#aborting.abort(this.#end);
    return this.#aborting.signal;
  }

  context(): HandlerContext {
    const { method } = this.#init;
    const deadlineMs = this.#deadlineMs;
    const call = this; // oxlint-disable-line no-this-alias -- the getters below are the context's own, so that it can be copied
    return {
      method,
      service: method.parent,
      requestMethod: "POST",
      protocolName: "connect",
      url: urlOf(method),
      values: this.values,
      timeoutMs: () => (deadlineMs === undefined ? undefined : deadlineMs - performance.now()),
      get signal() {
        return call.signal;
      },
      get requestHeader() {
        return call.requestHeader;
      },
      get responseHeader() {
        return call.responseHeader;
      },
      get responseTrailer() {
        return call.responseTrailer;
      },
    };
  }

  /** Returns the call as interceptors see it. */
  request(message: UnaryRequest["message"]): UnaryRequest {
    const { method } = this.#init;
    const call = this; // oxlint-disable-line no-this-alias -- as above
    return {
      stream: false,
      method,
      service: method.parent,
      requestMethod: "POST",
      url: urlOf(method),
      contextValues: this.values,
      message,
      get signal() {
        return call.signal;
      },
      get header() {
        return call.requestHeader;
      },
    };
  }

  /**
   * Returns the result of `f`, unless the deadline passes or the client cancels before; `f` is notified by its signal.
   */
  async within<T>(f: () => Promise<T>): Promise<T> {
    const { signal, timeoutMs } = this.#init;
    if (signal?.aborted) throw canceled(signal);
    let reject: (error: ConnectError) => void = () => {};
    const cut = new Promise<never>((_resolve, fail) => (reject = fail));
    const giveUp = (error: ConnectError): void => (this.#finish(error), reject(error));
    const onAbort = (): void => giveUp(canceled(signal));
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => giveUp(new ConnectError("the operation timed out", Code.DeadlineExceeded)), timeoutMs);
    signal?.addEventListener("abort", onAbort);
    try {
      return await Promise.race([f(), cut]);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#finish(COMPLETED);
    }
  }

  #finish(end: ConnectError): void {
    this.#end ??= end;
    this.#aborting?.abort(this.#end);
  }
}

const COMPLETED = new ConnectError("the call has completed", Code.Canceled);

const canceled = (signal: AbortSignal | undefined): ConnectError => ConnectError.from(signal?.reason, Code.Canceled);

const urlOf = (method: DescMethodUnary): string => `https://in-process/${method.parent.typeName}/${method.name}`;

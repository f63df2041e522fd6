import type { DescMethodUnary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  type ContextValues,
  type HandlerContext,
  type UnaryRequest,
} from "@connectrpc/connect";

/** Longest delay of a timer in Node; a longer one would end at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Starts the timer of a call's deadline, if it has one; `end` receives the error. */
export const deadlineTimer = (
  timeoutMs: number | undefined,
  end: (error: ConnectError) => void,
): NodeJS.Timeout | undefined =>
  timeoutMs === undefined
    ? undefined
    : setTimeout(
        () => end(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
        Math.min(timeoutMs, TIMER_MS_MAX),
      );

type HeadersInit = ConstructorParameters<typeof Headers>[0];

export type UnaryCallInit = {
  readonly method: DescMethodUnary;
  readonly header: HeadersInit;
  readonly timeoutMs: number | undefined;
};

/**
 * One unary call on the server: its context for the implementation, and its end. Headers and the signal are created on
 * first use: few implementations need them, and they cost more than all the rest.
 */
export class UnaryCall {
  readonly values: ContextValues = createContextValues();
  readonly #init: UnaryCallInit;
  readonly #deadlineMs: number | undefined;
  #requestHeader: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #aborting: AbortController | undefined;
  #end: ConnectError | undefined;
  #reject: (error: ConnectError) => void = () => {};

  constructor(init: UnaryCallInit) {
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

  /** Returns what the implementation has set; undefined if nothing. */
  get set(): { readonly header: Headers | undefined; readonly trailer: Headers | undefined } {
    return { header: this.#responseHeader, trailer: this.#responseTrailer };
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
   * Returns the result of `f`, unless the deadline passes or the call is canceled before; `f` is notified by its signal.
   */
  async within<T>(f: () => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#init;
    const cut = new Promise<never>((_resolve, reject) => (this.#reject = reject));
    const timer = deadlineTimer(timeoutMs, (error) => this.cancel(error));
    try {
      return await Promise.race([f(), cut]);
    } finally {
      clearTimeout(timer);
      this.abort(COMPLETED);
    }
  }

  /** Ends the call with an error, for example because the client has gone. */
  cancel(error: ConnectError): void {
    this.abort(error);
    this.#reject(error);
  }

  /** Notifies the implementation by its signal; the call ends as the implementation decides. */
  abort(reason: ConnectError): void {
    this.#end ??= reason;
    this.#aborting?.abort(this.#end);
  }
}

const COMPLETED = new ConnectError("the call has completed", Code.Canceled);

const urlOf = (method: DescMethodUnary): string => `https://service/${method.parent.typeName}/${method.name}`;

import type {
  DescMessage,
  DescMethodStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
} from "@bufbuild/protobuf";
import {
  createClient,
  createContextValues,
  type CallOptions,
  type Client,
  type ContextValues,
  type Transport,
} from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { inSpan } from "@millwright/telemetry";
import type { CallerSigner } from "./caller-token.ts";
import { fromConnectError } from "./errors.ts";
import { isTrustedInProcess, OUTGOING, SIGNER, signedHeader, tracedHeader } from "./in-process-callers.ts";
import { methodName, rpcAttributes } from "./server-options.ts";

/**
 * Default deadline: as long as a service may take to respond, and longer than it takes to detect an upstream service that is
 * frozen (`upstreamTransport`). Long polls and streams must set their own.
 */
const TIMEOUT_MS = 30_000;

type HeadersInit = ConstructorParameters<typeof Headers>[0];
export type CallSettings = {
  /** Default 30 s; 0 for none (streams). */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
};

/** The options of one call: its caller, and its deadline. */
export function call(caller: Caller, settings: CallSettings = {}): CallOptions {
  const { timeoutMs = TIMEOUT_MS, signal } = settings;
  const contextValues = createContextValues().set(OUTGOING, { caller });
  return { timeoutMs, contextValues, ...(signal ? { signal } : {}) };
}

export type ClientOptions = {
  /** Signs the callers of `call(…)`. A client without a signer (a worker) authenticates with its own headers. */
  readonly signer?: CallerSigner;
};

/** Returns a client of an upstream service. It throws DomainErrors only. */
export const clientFor = <S extends DescService>(
  service: S,
  transport: Transport,
  options: ClientOptions = {},
): Client<S> => createClient(service, translating(transport, options.signer));

function translating(transport: Transport, signer: CallerSigner | undefined): Transport {
  return {
    unary<I extends DescMessage, O extends DescMessage>(
      method: DescMethodUnary<I, O>,
      signal: AbortSignal | undefined,
      timeoutMs: number | undefined,
      header: HeadersInit,
      input: MessageInitShape<I>,
      values?: ContextValues,
    ) {
      return inSpan(methodName(method), { kind: "client", attributes: rpcAttributes(method) }, async () => {
        try {
          return await transport.unary(
            method,
            signal,
            timeoutMs,
            await addressed(transport, header, values, signer),
            input,
            values,
          );
        } catch (error) {
          throw fromConnectError(error);
        }
      });
    },
    stream<I extends DescMessage, O extends DescMessage>(
      method: DescMethodStreaming<I, O>,
      signal: AbortSignal | undefined,
      timeoutMs: number | undefined,
      header: HeadersInit,
      input: AsyncIterable<MessageInitShape<I>>,
      values?: ContextValues,
    ) {
      const open = async () => {
        try {
          const response = await transport.stream(
            method,
            signal,
            timeoutMs,
            await addressed(transport, header, values, signer),
            input,
            values,
          );
          return { ...response, message: translated(response.message) };
        } catch (error) {
          throw fromConnectError(error);
        }
      };
      const response = open();
      // the call starts before its first message is read; if that never happens, a rejection would end the process
      response.catch(() => {});
      return response;
    },
  };
}

async function* translated<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw fromConnectError(error);
  }
}

/**
 * Returns the headers with the trace and the caller. A transport that ends in this process gets the signer instead of a
 * signature.
 */
async function addressed(
  transport: Transport,
  header: HeadersInit,
  values: ContextValues | undefined,
  signer: CallerSigner | undefined,
): Promise<HeadersInit> {
  const outgoing = values?.get(OUTGOING);
  if (!outgoing) return isTrustedInProcess(transport) ? header : tracedHeader(header);
  if (!signer) throw new Error("this client has no signer for callers");
  if (isTrustedInProcess(transport)) return (void values?.set(SIGNER, signer), header);
  return signedHeader(header, outgoing.caller, signer);
}

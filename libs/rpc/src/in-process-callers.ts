import { createContextKey, type ContextValues, type Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { currentScope, formatTraceparent, TRACEPARENT } from "@millwright/telemetry";
import { CALLER_HEADER, REQUEST_ID_HEADER, type CallerSigner } from "./caller-token.ts";

type HeadersInit = ConstructorParameters<typeof Headers>[0];

/** The caller of an outgoing call. */
export const OUTGOING = createContextKey<{ readonly caller: Caller } | undefined>(undefined, {
  description: "outgoing caller",
});
/** The signer of an outgoing call that stays in this process. */
export const SIGNER = createContextKey<CallerSigner | undefined>(undefined, {
  description: "signer of the outgoing caller",
});
/**
 * Set on the server for calls of the same process, with the caller if it needs no signature. Headers cannot set it.
 */
export const LOCAL = createContextKey<{ readonly caller?: Caller | undefined } | undefined>(undefined, {
  description: "call of the same process",
});

/** Marks a transport that ends in this process and signs callers only when needed. */
export const TRUSTED_IN_PROCESS = Symbol("callers of the same process are trusted");

export const isTrustedInProcess = (transport: Transport): boolean => TRUSTED_IN_PROCESS in transport;

/** Headers as a plain object, which is much cheaper than `Headers`; the names are in lower case. */
export type PlainHeader = Readonly<Record<string, string>>;

export const plainHeader = (header: HeadersInit): PlainHeader =>
  header === undefined ? {} : isPlain(header) ? header : Object.fromEntries(new Headers(header));

const isPlain = (header: NonNullable<HeadersInit>): header is PlainHeader =>
  Object.getPrototypeOf(header) === Object.prototype;

/** Returns the headers with the trace context, as sent over the network. */
export function tracedHeader(header: HeadersInit): PlainHeader {
  const scope = currentScope();
  return scope ? { ...plainHeader(header), [TRACEPARENT]: formatTraceparent(scope.trace) } : plainHeader(header);
}

/** Returns the headers with the trace context and the signed caller. */
export async function signedHeader(header: HeadersInit, caller: Caller, signer: CallerSigner): Promise<PlainHeader> {
  return {
    ...tracedHeader(header),
    [CALLER_HEADER]: await signer.sign(caller),
    [REQUEST_ID_HEADER]: caller.requestId,
  };
}

/**
 * Passes callers from the clients to the implementations of the same process. The first call of each signer is signed
 * and verified as over the network; after that its callers are trusted without a signature.
 */
export class InProcessCallers {
  readonly #trusted = new WeakSet<CallerSigner>();

  /** Returns the caller if it is trusted; undefined if it must be signed. */
  caller(values: ContextValues | undefined): Caller | undefined {
    const [caller, signer] = [values?.get(OUTGOING)?.caller, values?.get(SIGNER)];
    if (!caller || !signer || !this.#trusted.has(signer)) return undefined;
    return caller.principal.type === "service" && caller.principal.uid !== signer.service ? undefined : caller;
  }

  /** Returns the headers of a call whose caller must be signed. */
  async signed(header: HeadersInit, values: ContextValues | undefined): Promise<PlainHeader> {
    const [caller, signer] = [values?.get(OUTGOING)?.caller, values?.get(SIGNER)];
    return caller && signer ? signedHeader(header, caller, signer) : tracedHeader(header);
  }

  /** Trusts the signer of a call after its signature was accepted. */
  trust(values: ContextValues | undefined): void {
    const signer = values?.get(SIGNER);
    if (signer) this.#trusted.add(signer);
  }
}

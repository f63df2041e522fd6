import { createContextKey, type ContextValues, type Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { currentScope, formatTraceparent, TRACEPARENT } from "@millwright/telemetry";
import { CALLER_HEADER, type CallerSigner } from "./caller-token.ts";

type HeadersInit = ConstructorParameters<typeof Headers>[0];

/** For whom a call goes out. */
export const OUTGOING = createContextKey<{ readonly caller: Caller } | undefined>(undefined, {
  description: "outgoing caller",
});
/** Who would sign, on a call that stays in this process. */
export const SIGNER = createContextKey<CallerSigner | undefined>(undefined, {
  description: "signer of the outgoing caller",
});
/** On the side of the server: the call comes from this process; with its caller, when that needs no proof. No header can say so. */
export const LOCAL = createContextKey<{ readonly caller?: Caller | undefined } | undefined>(undefined, {
  description: "call of the same process",
});

/** Marks a transport that ends in this process and asks for signatures only where it needs one. */
export const TRUSTED_IN_PROCESS = Symbol("callers of the same process are trusted");

export const isTrustedInProcess = (transport: Transport): boolean => TRUSTED_IN_PROCESS in transport;

/** The headers with the trace, as they go over the network. */
export function tracedHeader(header: HeadersInit): Headers {
  const headers = new Headers(header);
  const scope = currentScope();
  if (scope) headers.set(TRACEPARENT, formatTraceparent(scope.trace));
  return headers;
}

/** The same with the signed caller. */
export async function signedHeader(header: HeadersInit, caller: Caller, signer: CallerSigner): Promise<Headers> {
  const headers = tracedHeader(header);
  headers.set(CALLER_HEADER, await signer.sign(caller));
  return headers;
}

/**
 * Hands callers from the clients to the implementations of the same process. The first call of each signer is signed and
 * verified as over the network; a signer that was found good need not prove itself again.
 */
export class InProcessCallers {
  readonly #proven = new WeakSet<CallerSigner>();

  /** The caller as it is, if it may be believed; else undefined: it must be signed. */
  caller(values: ContextValues | undefined): Caller | undefined {
    const [caller, signer] = [values?.get(OUTGOING)?.caller, values?.get(SIGNER)];
    if (!caller || !signer || !this.#proven.has(signer)) return undefined;
    return caller.principal.type === "service" && caller.principal.uid !== signer.service ? undefined : caller;
  }

  /** The headers of a call whose caller must be signed. */
  async signed(header: HeadersInit, values: ContextValues | undefined): Promise<Headers> {
    const [caller, signer] = [values?.get(OUTGOING)?.caller, values?.get(SIGNER)];
    return caller && signer ? signedHeader(header, caller, signer) : tracedHeader(header);
  }

  /** A call that was signed has been let in. */
  believe(values: ContextValues | undefined): void {
    const signer = values?.get(SIGNER);
    if (signer) this.#proven.add(signer);
  }
}

import { createContextKey, type ContextValues, type Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { CALLER_HEADER, type CallerSigner, type Verifier } from "./caller-token.ts";

/** For whom a call goes out. */
export type Outgoing = { readonly caller: Caller };
export const OUTGOING = createContextKey<Outgoing | undefined>(undefined, { description: "outgoing caller" });
/** Who would sign, on a call that stays in this process. */
export const SIGNER = createContextKey<CallerSigner | undefined>(undefined, { description: "signer of the outgoing caller" });

/** Marks a transport that ends in this process and asks for signatures only where it needs one. */
export const IN_PERSON = Symbol("callers are handed over in person");

export const isInPerson = (transport: Transport): boolean => IN_PERSON in transport;

/** Names a handed-over caller to the router of the same process; means nothing anywhere else. */
const HANDLE_HEADER = "millwright-caller-handle";

/**
 * Hands callers from the clients to a router of the same process. The first call of each signer is signed and verified as
 * over the network; a signer that was found good need not prove itself again, for nobody else can reach this table.
 */
export class Handover {
  readonly #callers = new Map<string, Caller>();
  readonly #proven = new WeakSet<CallerSigner>();
  #count = 0;

  /** Makes the call `f` while its caller can be asked for. */
  async during<T>(header: Headers, values: ContextValues | undefined, f: () => Promise<T>): Promise<T> {
    const [outgoing, signer] = [values?.get(OUTGOING), values?.get(SIGNER)];
    header.delete(HANDLE_HEADER);
    if (!outgoing || !signer) return f();
    const { caller } = outgoing;
    const isForeign = caller.principal.type === "service" && caller.principal.uid !== signer.service;
    if (!this.#proven.has(signer) || isForeign) {
      header.set(CALLER_HEADER, await signer.sign(caller));
      const answer = await f();
      this.#proven.add(signer);
      return answer;
    }
    const handle = String(++this.#count);
    header.set(HANDLE_HEADER, handle);
    this.#callers.set(handle, caller);
    try {
      return await f();
    } finally {
      this.#callers.delete(handle);
    }
  }

  /** A verifier that knows handed-over callers, and leaves the others to `verifier`. */
  verifier(verifier: Verifier): Verifier {
    return {
      authenticate: async (header, method) => this.#callers.get(header.get(HANDLE_HEADER) ?? "") ?? (await verifier.authenticate(header, method)),
    };
  }
}

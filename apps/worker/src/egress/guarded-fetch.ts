import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable, Transform } from "node:stream";
import type { OutboundGate } from "./outbound-gate.ts";
import type { Denial } from "./denials.ts";
import { gatedPipe } from "./gated-pipe.ts";
import type { EgressPolicy } from "./policy.ts";

export type GuardedFetchOptions = {
  readonly policy: EgressPolicy;
  /** Checked before each request and for every chunk of its response. */
  readonly gate: OutboundGate;
  readonly onDenied: (denial: Denial) => void;
  /** The maximum size of a response; a longer one is cut off. */
  readonly bytesMax: number;
};

/** Thrown if a request was not sent or its response was cut off. The message is for users. */
export class FetchRefused extends Error {}

const NO_BODY = [101, 204, 205, 304];

/**
 * Returns a `fetch` for the worker's own requests on behalf of a run: to the hosts that the run may connect to, at the
 * checked addresses, while the outbound gate is open. Redirects are not followed. Throws `FetchRefused`, connection
 * errors and the reason of `signal`.
 */
export const guardedFetch =
  (options: GuardedFetchOptions) =>
  async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { protocol, hostname, port } = new URL(url);
    if (protocol !== "http:" && protocol !== "https:") throw new FetchRefused("Only http and https URLs are fetched.");
    const isTls = protocol === "https:";
    await options.gate.whenOpen();
    const addresses = await checkedAddresses(
      options,
      hostname.replace(/^\[(.*)\]$/, "$1"),
      Number(port) || (isTls ? 443 : 80),
    );
    const request = (isTls ? httpsRequest : httpRequest)(url, {
      ...{
        method: init.method ?? "GET",
        headers: Object.fromEntries(new Headers(init.headers)),
        agent: false,
        lookup: lookupOf(addresses),
      },
      signal: init.signal ?? undefined,
    });
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve).on("error", reject);
      request.end(typeof init.body === "string" ? init.body : undefined);
    });
    return responseOf(incoming, options);
  };

async function checkedAddresses(
  { policy, onDenied }: GuardedFetchOptions,
  host: string,
  port: number,
): Promise<readonly string[]> {
  const decision = await policy.decide(host, port);
  if ("addresses" in decision) return decision.addresses;
  onDenied({ host, port, reason: decision.denied });
  const why = {
    host_not_allowed: "this run must not connect to it",
    internal_address: "it has an internal address",
    name_unknown: "its name cannot be resolved",
  }[decision.denied];
  throw new FetchRefused(`No connection to ${host}:${port}: ${why}.`);
}

/**
 * Returns a lookup of the checked addresses. The name is not resolved again, because a later resolution could differ.
 */
const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_host, { all }, found) => {
    const entries = addresses.map((address) => ({ address, family: isIP(address) }));
    if (all) found(null, entries);
    else found(null, entries[0]?.address ?? "", entries[0]?.family);
  };

function responseOf(incoming: IncomingMessage, { gate, bytesMax }: GuardedFetchOptions): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    for (const each of [value ?? []].flat()) headers.append(name, each);
  const status = incoming.statusCode ?? 502;
  if (NO_BODY.includes(status)) incoming.resume();
  const body = NO_BODY.includes(status)
    ? null
    : (Readable.toWeb(bounded(incoming, bytesMax, () => isOpen(gate))) as ReadableStream);
  return new Response(body, { status, statusText: incoming.statusMessage ?? "", headers });
}

function bounded(incoming: IncomingMessage, bytesMax: number, isOpenNow: () => boolean): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) done(new FetchRefused(`The response exceeds ${bytesMax} bytes.`));
      else done(null, chunk);
    },
  });
  const through = gatedPipe(isOpenNow);
  const fail = (error: Error): void => {
    incoming.destroy();
    through.destroy();
    counted.destroy(error);
  };
  for (const stream of [incoming, through, counted]) stream.on("error", fail);
  counted.on("close", () => incoming.destroy()); // the consumer has stopped reading
  return incoming.pipe(through).pipe(counted);
}

function isOpen(gate: OutboundGate): boolean {
  try {
    gate.assertOpen();
    return true;
  } catch {
    return false;
  }
}

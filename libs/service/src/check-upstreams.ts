import { setTimeout as pause } from "node:timers/promises";
import type { probeHealth } from "@millwright/rpc";
import type { Logger } from "@millwright/telemetry";

/** Services of a platform start together, so an upstream service may need this long until it serves. */
const ATTEMPTS = 10;
const INTERVAL_MS = 3_000;

export type UpstreamCheck = {
  readonly upstreams: Readonly<Record<string, readonly string[]>>;
  readonly probe: (url: string) => ReturnType<typeof probeHealth>;
  readonly log: Logger;
  /** Milliseconds between two probes of an address. */
  readonly intervalMs?: number;
};

/**
 * Probes every address of every upstream service after the start and logs a warning for each that does not serve within
 * half a minute, such as one with a wrong port. Ends early if the signal is aborted. Never rejects.
 */
export async function checkUpstreams(check: UpstreamCheck, signal: AbortSignal): Promise<void> {
  const addresses = Object.entries(check.upstreams).flatMap(([name, urls]) => urls.map((url) => [name, url] as const));
  await Promise.all(addresses.map(([name, url]) => checkAddress(check, name, url, signal)));
}

async function checkAddress(
  { probe, log, intervalMs = INTERVAL_MS }: UpstreamCheck,
  name: string,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    const problem = await probe(url);
    if (problem === undefined) return;
    if (attempt === ATTEMPTS) {
      log.warn(
        { component: name, address: new URL(url).host, error: new Error(problem) },
        "an upstream service does not serve",
      );
      return;
    }
    await pause(intervalMs, undefined, { signal, ref: false }).catch(() => {});
  }
}

import { isIP } from "node:net";
import { addressSet } from "@millwright/addresses";
import { optional, partsOf } from "@millwright/config";
import { outboundRule } from "./outbound-rule.ts";

/** The internal hosts that the operator allows; undefined if the variable is absent. An empty text allows none. */
export const allowedInternalHosts = optional.custom(
  "MILLWRIGHT_ALLOWED_INTERNAL_HOSTS",
  "[Internal hosts and networks](standalone.md#internal-addresses) at which models, code hosts and definition " +
    "repositories of teams may be. Default: none.",
  {
    allowed: "hosts, addresses or networks such as ollama.internal or 10.1.0.0/16, with commas between",
    allowsEmpty: true,
    parse(text): readonly string[] {
      const hosts = partsOf(text);
      outboundRule(hosts);
      return hosts;
    },
  },
);

/** This machine. */
export const LOOPBACK: readonly string[] = ["localhost", "127.0.0.0/8", "::1"];

const loopback = addressSet(["127.0.0.0/8", "::1"]);

/** Returns whether a listen address, or the host of a URL, is reachable only from this machine. */
export function isLoopbackHost(text: string): boolean {
  const host = text
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  return isIP(host) === 0 ? /^(?:.+\.)?localhost$/.test(host) : loopback.has(host);
}

/** How the platform is exposed. */
export type Exposure = {
  /** Its listen address. */
  readonly host: string;
  /** Configured origins under which users and senders of webhooks reach it. */
  readonly origins: readonly (string | undefined)[];
  readonly trustedProxies: readonly string[];
};

/**
 * Returns the internal addresses that teams may reach unless the operator sets a list: this machine, if only its own
 * users reach the platform; else none. A platform that listens on a loopback address behind a proxy serves other users
 * too.
 */
export function defaultInternalHosts({ host, origins, trustedProxies }: Exposure): readonly string[] {
  const isLocal = (origin: string | undefined): boolean =>
    origin === undefined || isLoopbackHost(new URL(origin).hostname);
  return isLoopbackHost(host) && trustedProxies.length === 0 && origins.every(isLocal) ? LOOPBACK : [];
}

import { isIP } from "node:net";
import { addressSet } from "@millwright/addresses";
import type { Setting } from "@millwright/config";
import { outboundRule } from "./outbound-rule.ts";

/** What of the inside may be reached at addresses that teams have set. Undefined: the operator says nothing. */
export const allowedInternalHosts: Setting<readonly string[] | undefined> = {
  name: "MILLWRIGHT_ALLOWED_INTERNAL_HOSTS",
  read(text) {
    if (text === undefined) return { value: undefined };
    const hosts = text
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean);
    try {
      outboundRule(hosts);
      return { value: hosts };
    } catch {
      return {
        fault: "must be hosts, addresses or networks such as ollama.internal or 10.1.0.0/16, with commas between",
      };
    }
  },
};

/** The machine itself. */
export const LOOPBACK: readonly string[] = ["localhost", "127.0.0.0/8", "::1"];

const loopback = addressSet(["127.0.0.0/8", "::1"]);

/** Whether a listen address, or the host of a URL, is one that only programs on this machine reach. */
export function isLoopbackHost(text: string): boolean {
  const host = text
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  return isIP(host) === 0 ? /^(?:.+\.)?localhost$/.test(host) : loopback.has(host);
}

/** How a platform is reached. */
export type Exposure = {
  /** Its listen address. */
  readonly host: string;
  /** Origins under which users and senders of webhooks reach it, as far as the operator sets them. */
  readonly origins: readonly (string | undefined)[];
  readonly trustedProxies: readonly string[];
};

/**
 * Returns what addresses set by teams may reach of the inside unless the operator sets a list: this machine, if only its own users reach
 * the platform; else nothing. A platform that listens on a loopback address behind a proxy serves others too.
 */
export function defaultInternalHosts({ host, origins, trustedProxies }: Exposure): readonly string[] {
  const isLocal = (origin: string | undefined): boolean =>
    origin === undefined || isLoopbackHost(new URL(origin).hostname);
  return isLoopbackHost(host) && trustedProxies.length === 0 && origins.every(isLocal) ? LOOPBACK : [];
}

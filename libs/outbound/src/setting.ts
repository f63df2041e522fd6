import type { Setting } from "@millwright/config";
import { outboundRule } from "./outbound-rule.ts";

/** What of the inside may be reached at addresses that teams have set. Undefined: the operator says nothing. */
export const allowedInternalHosts: Setting<readonly string[] | undefined> = {
  name: "MILLWRIGHT_ALLOWED_INTERNAL_HOSTS",
  read(text) {
    if (text === undefined) return { value: undefined };
    const hosts = text.split(",").map((part) => part.trim()).filter(Boolean);
    try {
      outboundRule(hosts);
      return { value: hosts };
    } catch {
      return { fault: "must be hosts, addresses or networks such as ollama.internal or 10.1.0.0/16, with commas between" };
    }
  },
};

/** The machine itself: what somebody who runs the platform for themselves, on its loopback address, may have there. */
export const LOOPBACK: readonly string[] = ["localhost", "127.0.0.0/8", "::1"];

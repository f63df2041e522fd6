import { canonicalNetworks } from "@millwright/addresses";
import type { Setting } from "@millwright/config";

/**
 * Networks from which the platform's workers connect to the internet, as configured by the operator: addresses and
 * networks, in canonical form once read.
 */
export const egressRangesSetting: Setting<readonly string[]> = {
  name: "MILLWRIGHT_EGRESS_RANGES",
  read(text = "") {
    try {
      return {
        value: canonicalNetworks(
          text
            .split(",")
            .map((part) => part.trim())
            .filter(Boolean),
        ),
      };
    } catch {
      return { fault: "must be addresses or networks such as 203.0.113.0/24, with commas between" };
    }
  },
};

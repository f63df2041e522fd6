import { canonicalNetworks } from "@millwright/addresses";
import { optional, partsOf } from "@millwright/config";

/** Networks from which the platform's workers connect to the internet, in canonical form once read. */
export const egressRangesSetting = optional.custom(
  "MILLWRIGHT_EGRESS_RANGES",
  "Networks from which the platform's workers connect to the internet, as `GET /api/v1/networking/egress-ranges` returns them for allow lists.",
  {
    allowed: "addresses and networks such as 203.0.113.0/24, with commas between",
    default: "",
    parse: (text): readonly string[] => canonicalNetworks(partsOf(text)),
  },
);

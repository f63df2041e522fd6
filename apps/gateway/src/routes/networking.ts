import { z } from "zod";
import { isMember } from "@millwright/caller";
import { route, type Route } from "../rest/index.ts";

/** Where requests of service-hosted agents come from (fields-runs §5). The same for every team; a team that the caller is not in has none. */
export const networkingRoutes = ({
  egressRanges = [],
}: {
  readonly egressRanges?: readonly string[] | undefined;
}): Route[] => [
  route({
    method: "GET",
    path: "/networking/egress-ranges",
    summary: "List the networks that service-hosted agents come from",
    description:
      "For allow lists of other systems. As the platform's operator has configured them; canonical CIDR blocks, IPv4 before IPv6.",
    teamHeader: true,
    response: z.object({ cidrs: z.array(z.string()) }).meta({ id: "EgressRanges" }),
    handler: async ({ caller }) => ({
      cidrs: caller.activeTeamUid === undefined || isMember(caller, caller.activeTeamUid) ? [...egressRanges] : [],
    }),
  }),
];

import { z } from "zod";
import { isMember } from "@millwright/caller";
import { route, type Route } from "../../rest/index.ts";

/**
 * Returns the route of the networks from which service-hosted agents send requests. The list is the same for every
 * team; it is empty for a team that the caller is not a member of.
 */
export const networkingRoutes = ({
  egressRanges = [],
}: {
  readonly egressRanges?: readonly string[] | undefined;
}): Route[] => [
  route({
    method: "GET",
    path: "/networking/egress-ranges",
    summary: "List the networks from which service-hosted agents send requests",
    description:
      "For allow lists of other systems. Configured by the platform's operator. Canonical CIDR blocks, IPv4 before IPv6.",
    teamHeader: true,
    response: z.object({ cidrs: z.array(z.string()) }).meta({ id: "EgressRanges" }),
    handler: async ({ caller }) => ({
      cidrs: caller.activeTeamUid === undefined || isMember(caller, caller.activeTeamUid) ? [...egressRanges] : [],
    }),
  }),
];

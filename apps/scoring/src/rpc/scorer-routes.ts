import type { ConnectRouter } from "@connectrpc/connect";
import { scoring } from "@millwright/contracts";

export type ScorerRoutesDeps = object;

/** Scorers, their results and their judges' reports. */
export function scorerRoutes(router: ConnectRouter, _deps: ScorerRoutesDeps): void {
  router.service(scoring.ScorerService, {});
}

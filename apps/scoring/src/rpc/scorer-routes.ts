import type { ConnectRouter } from "@connectrpc/connect";
import { scoring } from "@millwright/contracts";
import { judgingMethods, type JudgingMethodsDeps } from "./judging-methods.ts";

export type ScorerRoutesDeps = JudgingMethodsDeps;

/** Scorers, their results and their judges' reports. */
export function scorerRoutes(router: ConnectRouter, deps: ScorerRoutesDeps): void {
  router.service(scoring.ScorerService, { ...judgingMethods(deps) });
}

import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";

export const scorersRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/scorers",
    validateSearch: v.object({
      /** Uid of the factory. Default: the first one. */
      factory: searchText,
    }),
    component: lazyRouteComponent(() => import("./scorers-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/scorers/$factoryUid/$scorerUid",
    validateSearch: v.object({
      /** Start of the range of pass rates, inclusive, UTC. Default: 30 days before its end. */
      from: searchText,
      /** End of the range, exclusive, UTC. Default: now. */
      before: searchText,
      period: searchChoice("day", "week", "month"),
      cursor: searchText,
    }),
    staticData: { parents: [{ label: "Scorers", to: "/scorers" }] },
    component: lazyRouteComponent(() => import("./scorer-page.tsx")),
  }),
] as const;
